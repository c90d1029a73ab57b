"""Command engine: an engine that one command line starts; most engines are of this kind and differ only in data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.engines.kinds.engine import Launch, Place, Probes
from loadgen.engines.kinds.knob_forms import CommandParts
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import check_word
from loadgen.engines.kinds.versions import installed

OFFLINE = {"HF_HUB_OFFLINE": "1"}  # a model in a folder needs no hub, so the engine must not wait for one


@dataclass(frozen=True, kw_only=True, eq=False)
class CommandEngine:
    """An engine that is started by one command line.

    Attributes:
        name: The engine's name in commands and results.
        head: Words before the model, the program first.
        table: How the engine takes the knobs.
        probes: URL paths of a running server.
        packages: Python distributions; the first one that is installed has the engine's version.
        devices: The variable that selects accelerators; empty: the engine has none.
        env: Environment variables of every server.
        always: Flags of every server, unless the user's own flags set the same thing.
        release: The version to write the command for; None: the installed one, or the newest if that is unknown.
    """

    name: str
    head: tuple[str, ...]
    table: KnobTable
    probes: Probes
    packages: tuple[str, ...] = ()
    devices: str = "CUDA_VISIBLE_DEVICES"
    env: Mapping[str, str] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    release: str | None = None

    def version(self) -> str | None:
        """Return the version in the Python environment of the program in PATH, without starting it."""
        return self.release or installed(self.head[0], self.packages)

    def knobs(self) -> Mapping[str, str]:
        """Return the supported knobs with the engine's own names, as `Engine.knobs`."""
        return self.table.own_names(self.version())

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """Return how to serve `model`, as `Engine.launch`."""
        version = self.version() if self.table.version_dependent else None  # asking for it may start a program
        checked = self.table.check(knobs)
        served_name = self.served_name(check_word("model", model), checked)
        placement: dict[str, object] = {"host": place.host, "port": place.port}
        if "served_name" in self.table.forms and "served_name" not in checked:
            placement["served_name"] = served_name
        self.table.check_raw_flags(raw, {*checked, *placement}, version)
        user = self.table.render(checked, version)
        own, files = self.configure(user, checked, raw, place)
        words = (*user.words, *own)
        devices = {self.devices: ",".join(place.devices)} if self.devices and place.devices else {}
        shorthand = (*self.shorthand_command(model), *words)
        return Launch(
            argv=(*self.command(model), *words, *self._always(raw), *self.table.render(placement, version).words),
            base_url=place.base_url,
            model=served_name,
            env={**self.env, **devices, **(OFFLINE if is_path(model) else {}), **user.env},
            files=files,
            tokenizer=model,
            shorthand=shorthand,
            normal=self.table.flag_syntax.normalize(shorthand),
        )

    def command(self, model: str) -> tuple[str, ...]:
        """Return the program and its model."""
        return *self.head, model

    def shorthand_command(self, model: str) -> tuple[str, ...]:
        """Return the program and its model as published benchmarks write them."""
        return self.command(model)

    def configure(
        self, user: CommandParts, knobs: Mapping[str, Any], raw: Sequence[str], place: Place
    ) -> tuple[tuple[str, ...], dict[Path, str]]:
        """Return the user's own flags as they are passed on, and files to write; engines with a config override it."""
        return tuple(raw), {}

    def served_name(self, model: str, knobs: Mapping[str, Any]) -> str:
        """Return the model name for requests: the knob's, else the model's; of a path its last part."""
        return str(knobs.get("served_name") or (Path(model).name.removesuffix(".gguf") if is_path(model) else model))

    def _always(self, raw: Sequence[str]) -> tuple[str, ...]:
        given = {name.replace("--no-", "--", 1) for name in self.table.raw_flags(raw)}
        return tuple(flag for flag in self.always if flag not in given)


def is_path(model: str) -> bool:
    """Return whether a model is a local path; a hub name has the form NAME or OWNER/NAME."""
    return model.startswith(("/", "./", "../")) or model.endswith(".gguf")

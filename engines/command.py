"""Command: an engine that is one command line; most are, and differ in data alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.engines.engine import Launch, Place, Probes
from loadgen.engines.table import Table, check_model
from loadgen.engines.versions import installed
from loadgen.engines.ways import Said

OFFLINE = {"HF_HUB_OFFLINE": "1"}  # nobody waits for a hub where the model is a folder


@dataclass(frozen=True, kw_only=True, eq=False)
class Command:
    """An engine that is started by one command line.

    Attributes:
        name: In commands and results.
        head: Words before the model, the program first.
        table: How it says the knobs.
        probes: How to ask a running server.
        packages: Distributions of which the first that is there has its version.
        devices: The variable that names the accelerators it may use; empty: it has none.
        env: Variables that every server gets.
        always: Flags that every server gets where the user's own do not say the same.
        release: The version to speak to; None: the one that is installed, and where that cannot be told the newest.
    """

    name: str
    head: tuple[str, ...]
    table: Table
    probes: Probes
    packages: tuple[str, ...] = ()
    devices: str = "CUDA_VISIBLE_DEVICES"
    env: Mapping[str, str] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    release: str | None = None

    def version(self) -> str | None:
        """The version in the environment of the program in PATH, without starting it."""
        return self.release or installed(self.head[0], self.packages)

    def knobs(self) -> Mapping[str, str]:
        """See `Engine.knobs`."""
        return self.table.names(self.version())

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """See `Engine.launch`."""
        version = self.version() if self.table.dated else None  # telling it may start a program
        checked = self.table.check(knobs)
        served = self.served(check_model(model), checked)
        placed = {"host": place.host, "port": place.port} | (
            {"served_name": served} if self._says_name(checked) else {}
        )
        self.table.refuse(raw, {*checked, *placed}, version)
        user = self.table.say(checked, version)
        fixed = self.table.say(placed, version)
        own, files = self.configure(user, checked, raw, place)
        told = (*user.words, *own)
        shorthand = (*self.page(model), *told)
        return Launch(
            argv=(*self.command(model), *told, *self._always(raw), *fixed.words),
            base_url=place.base_url,
            model=served,
            env={**self.env, **self._where(model, place), **user.env},
            files=files,
            tokenizer=model,
            shorthand=shorthand,
            normal=self.table.spelling.normal(shorthand),
        )

    def command(self, model: str) -> tuple[str, ...]:
        """The program and its model."""
        return *self.head, model

    def page(self, model: str) -> tuple[str, ...]:
        """The same, as pages print it."""
        return self.command(model)

    def configure(
        self, user: Said, knobs: Mapping[str, Any], raw: Sequence[str], place: Place
    ) -> tuple[tuple[str, ...], dict[Path, str]]:
        """The user's own flags as they are passed, and files to be written; for engines that have some."""
        return tuple(raw), {}

    def served(self, model: str, knobs: Mapping[str, Any]) -> str:
        """The name that requests use: the knob's, else the model's, of a path its last part."""
        return str(knobs.get("served_name") or (Path(model).name.removesuffix(".gguf") if is_path(model) else model))

    def _says_name(self, knobs: Mapping[str, Any]) -> bool:
        return "served_name" in self.table.ways and "served_name" not in knobs

    def _always(self, raw: Sequence[str]) -> tuple[str, ...]:
        said = {name.replace("--no-", "--", 1) for name in self.table.raw_flags(raw)}
        return tuple(flag for flag in self.always if flag not in said)

    def _where(self, model: str, place: Place) -> dict[str, str]:
        env = {self.devices: ",".join(place.devices)} if self.devices and place.devices else {}
        return env | (OFFLINE if is_path(model) else {})


def is_path(model: str) -> bool:
    """Whether a model is a folder or file of this machine, by its spelling: a hub name is NAME or OWNER/NAME."""
    return model.startswith(("/", "./", "../")) or model.endswith(".gguf")

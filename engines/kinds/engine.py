"""Engine: the description of one kind of inference server, as data and pure functions.

An engine turns a model, knobs and a place into a `Launch`, which the launcher carries out. It reads
installed files and the files that the user's flags name. So a command can be shown before it runs,
and tested without the engine. Most engines are a `CommandEngine`: one command line starts them, and
they differ only in data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loadgen.engines.kinds.knob_forms import CommandParts
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import check_word
from loadgen.engines.kinds.versions import installed
from loadgen.errors import BadInput

# A model in a folder needs no hub, so the engine must not wait for one.
OFFLINE = {"HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one server runs; the launcher decides it.

    Attributes:
        port: Port to listen on; reserved.
        folder: Folder of this launch only, for its log and its copies of configuration files.
        host: Address to listen on.
        devices: Ids of the accelerators it may use; empty: all that the engine finds.
    """

    port: int
    folder: Path
    host: str = "127.0.0.1"
    devices: tuple[str, ...] = ()

    @property
    def base_url(self) -> str:
        """URL of a server at this place: scheme, host and port."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one server.

    Attributes:
        argv: The command; its first word is looked up in PATH.
        base_url: URL of the server: scheme, host and port.
        model: The model's name in requests.
        env: Environment variables, added to the caller's.
        files: Files to write before the start, readable by their owner only: path to content.
        folder: The working directory; None: the caller's.
        tokenizer: A tokenizer.json, its folder or a hub name that counts tokens as the engine does;
            None: unknown.
        template_tokens: Tokens that the chat template adds to a message; None: unknown before the
            start.
        shorthand: The command as published benchmarks write it, without the flags of every server;
            empty: `argv`.
        normal: Normal form of the shorthand, equal for commands with the same meaning, each flag
            with its values; empty: `argv` is compared.
        context_len: Tokens of prompt and answer that a request may have; None: only the engine
            knows.
    """

    argv: tuple[str, ...]
    base_url: str
    model: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    folder: Path | None = None
    tokenizer: str | None = None
    template_tokens: int | None = None
    shorthand: tuple[str, ...] = ()
    normal: tuple[tuple[str, ...], ...] = ()
    context_len: int | None = None


@dataclass(frozen=True, slots=True)
class Probes:
    """URL paths of a running server, each with a leading slash; None: the server has none.

    Attributes:
        health: Answers 200 once requests are accepted; that tokens come is checked by one real
            request.
        metrics: Metrics as Prometheus text.
        version: JSON with the engine's version.
        resolved: JSON with the configuration in effect.
        flush: Paths that empty caches; POSTed between runs.
    """

    health: str | None = None
    metrics: str | None = None
    version: str | None = None
    resolved: str | None = None
    flush: tuple[str, ...] = ()


class Engine(Protocol):
    """One kind of inference server, found by its name in the entry-point group
    `loadgen.engines`.
    """

    @property
    def name(self) -> str:
        """The engine's name in commands and results."""

    @property
    def probes(self) -> Probes:
        """URL paths of a running server."""

    def version(self) -> str | None:
        """Return the installed version; None if it is unknown. Must return within seconds."""

    def knobs(self) -> Mapping[str, str]:
        """Return the supported knobs, each with the name that the installed version has for it.

        Those that are not in `loadgen.engines.kinds.knobs` are the engine's own. Their values are
        texts from a command line, and have the types of the study file in a study.
        """

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """Return how to serve `model` at `place`.

        Args:
            model: A folder, a file or a hub name.
            knobs: Engine-neutral name to value; `loadgen.engines.kinds.knobs` lists them.
            raw: The engine's own flags; they follow the flags of the knobs.
            place: Where the server runs.

        Raises:
            BadInput: The engine or its version does not support a knob, a value cannot be used, a
                knob contradicts another knob or a raw flag, or the engine cannot serve at this
                place.
        """


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
        device_flags: Flags that select accelerators too.
        env: Environment variables of every server.
        always: Flags of every server, unless the user's own flags set the same thing.
        release: The version to write the command for; None: the installed one, or the newest if
            that is unknown.
    """

    name: str
    head: tuple[str, ...]
    table: KnobTable
    probes: Probes
    packages: tuple[str, ...] = ()
    devices: str = "CUDA_VISIBLE_DEVICES"
    device_flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    release: str | None = None

    def version(self) -> str | None:
        """Return the version in the Python environment of the program in PATH, without starting
        it.
        """
        return self.release or installed(self.head[0], self.packages)

    def knobs(self) -> Mapping[str, str]:
        """Return the supported knobs with the engine's own names, as `Engine.knobs`."""
        return self.table.own_names(self.version())

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """Return how to serve `model`, as `Engine.launch`.

        Raises:
            BadInput: As `Engine.launch`.
        """
        # Asking for it may start a program.
        version = self.version() if self.table.version_dependent else None
        checked = self.table.check(knobs)
        served_name = self.served_name(check_word("model", model), checked)
        placement: dict[str, object] = {"host": place.host, "port": place.port}
        if "served_name" in self.table.forms and "served_name" not in checked:
            placement["served_name"] = served_name
        self.table.check_raw_flags(raw, {*checked, *placement}, version)
        raw_flags = self.table.raw_flags(raw)
        for flag in self.device_flags:
            if place.devices and flag in raw_flags:
                raise BadInput(flag, "the launcher sets the devices", "leave the flag out")
        user = self.table.render(checked, version)
        flags, files = self.configure(user, checked, raw, place)
        words = (*user.words, *flags)
        user_flags = {name.replace("--no-", "--", 1) for name in raw_flags}
        always = [flag for flag in self.always if flag not in user_flags]
        devices = {self.devices: ",".join(place.devices)} if self.devices and place.devices else {}
        shorthand = (*self.shorthand_command(model), *words)
        return Launch(
            argv=(
                *self.command(model),
                *words,
                *always,
                *self.table.render(placement, version).words,
            ),
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
        """Return the user's own flags as they are passed on, and files to write; engines with a
        config override it.
        """
        return tuple(raw), {}

    def served_name(self, model: str, knobs: Mapping[str, Any]) -> str:
        """Return the model name for requests: the knob's, else the model's; of a path its last
        part.
        """
        return str(
            knobs.get("served_name")
            or (Path(model).name.removesuffix(".gguf") if is_path(model) else model)
        )


def is_path(model: str) -> bool:
    """Return whether a model is a local path; a hub name has the form NAME or OWNER/NAME."""
    return model.startswith(("/", "./", "../")) or model.endswith(".gguf")

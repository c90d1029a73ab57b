"""Engine: what it takes to start one kind of inference server and to talk to it, as data and pure functions.

An engine starts nothing, writes nothing and asks nobody: it turns a model, knobs and a place into a `Launch`, which the
launcher carries out. It reads what is installed and the files that the user's flags name. So every command can be shown
before it is run, and tested without the engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Place:
    """Where one server is to run; the launcher decides it.

    Attributes:
        port: To listen on; reserved.
        folder: Of this launch alone: logs, private copies of configurations.
        host: To listen on.
        devices: Ids of the accelerators it may use; none: whatever the engine finds.
    """

    port: int
    folder: Path
    host: str = "127.0.0.1"
    devices: tuple[str, ...] = ()

    @property
    def base_url(self) -> str:
        """Where what listens here is asked."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Launch:
    """One server about to be started.

    Attributes:
        argv: The command; the first item is looked up in PATH.
        base_url: Scheme, host and port at which it will answer.
        model: Its name in requests.
        env: Variables beside the caller's own.
        files: What is written before it starts, for its owner alone: path to content.
        folder: Its working directory; None: the caller's.
        tokenizer: A tokenizer.json, its folder or a hub name that counts as the engine does; None: none is known.
        template_tokens: What its chat template adds to the tokens of a message; None: nobody knows beforehand.
        shorthand: How pages print the command: without what every server is told, and as a command where that is none;
            empty: as `argv`.
        normal: The same in a form that is equal for commands that say the same, each flag with its values apart; empty:
            `argv` is compared.
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


@dataclass(frozen=True, slots=True)
class Probes:
    """Paths that a server of the engine answers, each with a leading slash; None where there is none.

    Attributes:
        health: 200 once it can be asked; that it also answers is shown by one real token.
        metrics: Prometheus text.
        version: JSON with the engine's version.
        resolved: JSON with the configuration it ended up with.
        flush: POSTed between runs to empty its caches.
    """

    health: str | None = None
    metrics: str | None = None
    version: str | None = None
    resolved: str | None = None
    flush: tuple[str, ...] = ()


class Engine(Protocol):
    """One kind of inference server, found by its name in the entry-point group `loadgen.engines`."""

    @property
    def name(self) -> str:
        """In commands and results."""

    @property
    def probes(self) -> Probes:
        """How to ask a running server."""

    def version(self) -> str | None:
        """The version that is installed here; None where that cannot be told. Runs nothing that takes long."""

    def knobs(self) -> Mapping[str, str]:
        """The engine-neutral knobs that it has, each with its own name for it, as its version says it."""

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """How to serve `model` at `place`.

        Args:
            model: A folder, a file or a hub name.
            knobs: Engine-neutral names to values; see `loadgen.engines.knobs`.
            raw: The engine's own flags, passed through behind those of the knobs.
            place: Where.

        Raises:
            BadInput: A knob is unknown to the engine or its version, has no usable value, or contradicts another or a
                raw flag; or the engine cannot serve at the place.
        """

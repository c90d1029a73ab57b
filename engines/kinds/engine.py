"""Engine: the description of one kind of inference server, as data and pure functions.

An engine starts no process, writes no file and sends no request. It turns a model, knobs and a place into a `Launch`,
which the launcher carries out. It reads installed files and the files that the user's flags name. So a command can be
shown before it runs, and tested without the engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


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
        tokenizer: A tokenizer.json, its folder or a hub name that counts tokens as the engine does; None: unknown.
        template_tokens: Tokens that the chat template adds to a message; None: unknown before the start.
        shorthand: The command as published benchmarks write it, without the flags of every server; empty: `argv`.
        normal: Normal form of the shorthand, equal for commands with the same meaning, each flag with its values;
            empty: `argv` is compared.
        context_len: Tokens of prompt and answer that a request may have; None: only the engine knows.
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
        health: Answers 200 once requests are accepted; that tokens come is checked by one real request.
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
    """One kind of inference server, found by its name in the entry-point group `loadgen.engines`."""

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

        Those that are not in `loadgen.engines.kinds.knobs` are the engine's own. Their values are texts from a command
        line, and have the types of the study file in a study.
        """

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """Return how to serve `model` at `place`.

        Args:
            model: A folder, a file or a hub name.
            knobs: Engine-neutral name to value; `loadgen.engines.kinds.knobs` lists them.
            raw: The engine's own flags; they follow the flags of the knobs.
            place: Where the server runs.

        Raises:
            BadInput: The engine or its version does not support a knob, a value cannot be used, a knob contradicts
                another knob or a raw flag, or the engine cannot serve at this place.
        """

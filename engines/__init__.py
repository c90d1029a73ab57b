"""Inference engines that loadgen can start; found by name through the entry-point group `loadgen.engines`."""

from typing import Any, Protocol

from loadgen.engines.launcher import Server

__all__ = ["Engine", "Server"]


class Engine(Protocol):
    """A kind of inference server, found by its name in the entry-point group `loadgen.engines`."""

    name: str

    def begin(self, **knobs: Any) -> Server:
        """Start a server and return at once; call its `ready()` before the first request.

        Raises:
            BadInput: A knob is unknown or has no usable value.
        """

    def start(self, **knobs: Any) -> Server:
        """Start a server and return when it answers.

        Raises:
            BadInput: As `begin`.
            EngineError: It did not come up.
        """

    def serve(self, argv: list[str]) -> int:
        """Run a server in the foreground with the engine's own flags, until interrupted; return the exit code."""

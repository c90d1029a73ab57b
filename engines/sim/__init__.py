"""The simulated engine: an OpenAI-compatible server with a continuous-batching cost model instead of a model."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadgen.engines.sim.command import engine

__all__ = ["engine"]


def __getattr__(name: str) -> Any:
    """Import the engine when it is asked for: its own process does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from loadgen.engines.sim.command import engine

    return engine

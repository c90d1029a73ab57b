"""Inference engines that loadgen can start; found by name through the entry-point group `loadgen.engines`."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadgen.engines.crash import Crash, EngineFailed
    from loadgen.engines.engine import Engine, Launch, Place, Probes
    from loadgen.engines.launcher import Launcher
    from loadgen.engines.server import Server
    from loadgen.engines.stopping import Leaked

__all__ = ["Crash", "Engine", "EngineFailed", "Launch", "Launcher", "Leaked", "Place", "Probes", "Server"]

_HOMES = {"EngineFailed": "crash", "Launch": "engine", "Place": "engine", "Probes": "engine", "Leaked": "stopping"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the simulator's own process needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, name.lower())}"), name)

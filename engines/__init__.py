"""Inference engines that loadgen can start, found by name in the entry-point group
`loadgen.engines`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadgen.engines.kinds.engine import Engine, Launch, Place, Probes
    from loadgen.engines.launch.crash_cause import Crash, EngineFailed
    from loadgen.engines.launch.launcher import Launcher
    from loadgen.engines.launch.server import Server
    from loadgen.engines.launch.shutdown import Leaked

__all__ = [
    "Crash",
    "Engine",
    "EngineFailed",
    "Launch",
    "Launcher",
    "Leaked",
    "Place",
    "Probes",
    "Server",
]

_MODULES = {
    "Crash": "launch.crash_cause",
    "Engine": "kinds.engine",
    "EngineFailed": "launch.crash_cause",
    "Launch": "kinds.engine",
    "Launcher": "launch.launcher",
    "Leaked": "launch.shutdown",
    "Place": "kinds.engine",
    "Probes": "kinds.engine",
    "Server": "launch.server",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the simulator's own process needs none of
    them.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)

"""An open-loop load generator for LLM servers, with a compiled hot path and a verdict on its own runs."""

import importlib
from typing import TYPE_CHECKING, Any

from loadgen.version import __version__

if TYPE_CHECKING:
    from loadgen.checks import Check, Verdict
    from loadgen.config.settings import RunSettings
    from loadgen.core.histogram import Histogram
    from loadgen.errors import BadInput, EngineError, LoadgenError, Unreachable
    from loadgen.metrics.progress import Progress
    from loadgen.metrics.snapshot import Snapshot
    from loadgen.runner.run import run, run_sync
    from loadgen.runner.run_result import Result, from_records
    from loadgen.runner.watch import Watched, watch
    from loadgen.workload.arrivals import Schedule
    from loadgen.workload.prompt import Dataset, Prompt


# Where each public name lives. They are imported when first used: `import loadgen` alone costs a few ms.
_HOMES = {
    "BadInput": "errors",
    "Check": "checks",
    "Dataset": "workload.prompt",
    "EngineError": "errors",
    "Histogram": "core.histogram",
    "LoadgenError": "errors",
    "Progress": "metrics.progress",
    "Prompt": "workload.prompt",
    "Result": "runner.run_result",
    "RunSettings": "config.settings",
    "Schedule": "workload.arrivals",
    "Snapshot": "metrics.snapshot",
    "Unreachable": "errors",
    "Verdict": "checks",
    "Watched": "runner.watch",
    "from_records": "runner.run_result",
    "run": "runner.run",
    "run_sync": "runner.run",
    "watch": "runner.watch",
}

__all__ = [
    "BadInput",
    "Check",
    "Dataset",
    "EngineError",
    "Histogram",
    "LoadgenError",
    "Progress",
    "Prompt",
    "Result",
    "RunSettings",
    "Schedule",
    "Snapshot",
    "Unreachable",
    "Verdict",
    "Watched",
    "__version__",
    "from_records",
    "run",
    "run_sync",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

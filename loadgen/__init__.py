"""An open-loop load generator for LLM servers, with a compiled hot path and a verdict on its own runs."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadgen.checks import Check, Verdict
    from loadgen.errors import BadInput, EngineError, LoadgenError, Unreachable
    from loadgen.histogram import Histogram
    from loadgen.progress import Progress
    from loadgen.prompts import Dataset, Prompt
    from loadgen.results import Result, from_records
    from loadgen.runner import run, run_sync
    from loadgen.schedule import Schedule
    from loadgen.settings import RunSettings
    from loadgen.snapshot import Snapshot
    from loadgen.watched import Watched, watch

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: `import loadgen` alone costs a few ms.
_HOMES = {
    "BadInput": "errors",
    "Check": "checks",
    "Dataset": "prompts",
    "EngineError": "errors",
    "Histogram": "histogram",
    "LoadgenError": "errors",
    "Progress": "progress",
    "Prompt": "prompts",
    "Result": "results",
    "RunSettings": "settings",
    "Schedule": "schedule",
    "Snapshot": "snapshot",
    "Unreachable": "errors",
    "Verdict": "checks",
    "Watched": "watched",
    "from_records": "results",
    "run": "runner",
    "run_sync": "runner",
    "watch": "watched",
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

"""An open-loop load generator for LLM servers, with a compiled hot path and a verdict on its own
runs.
"""

import importlib
from typing import Any

from loadgen.version import __version__

# Where each public name lives. They are imported when first used: `import loadgen` alone costs a
# few ms. Type checkers read `__init__.pyi`.
_HOMES = {
    "BadInput": "errors",
    "Check": "checks",
    "Dataset": "workload.prompt",
    "EngineError": "errors",
    "Finding": "lab.audit",
    "GivenUp": "errors",
    "Histogram": "core.histogram",
    "JudgedComparison": "analysis.compare",
    "LoadgenError": "errors",
    "Progress": "metrics.progress",
    "Prompt": "workload.prompt",
    "Result": "runner.run_result",
    "RunSettings": "config.settings",
    "SavedResult": "runner.run_result",
    "SavedSeries": "library.saved_files",
    "SavedStudy": "lab.library",
    "Schedule": "workload.arrivals",
    "Snapshot": "metrics.snapshot",
    "Unreachable": "errors",
    "UnsavedResult": "library.run",
    "Verdict": "checks",
    "Watched": "library.run",
    "audit": "lab.library",
    "compare": "library.compare",
    "from_records": "runner.run_result",
    "load": "library.saved_files",
    "load_all": "library.saved_files",
    "load_series": "library.saved_files",
    "load_study": "lab.library",
    "run": "library.run",
    "run_sync": "library.run",
    "search": "library.search",
    "search_sync": "library.search",
    "tune": "lab.library",
    "tune_sync": "lab.library",
    "watch": "library.run",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

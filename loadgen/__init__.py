"""An open-loop load generator for LLM servers, with a compiled hot path and a verdict on its own runs."""

import importlib
from typing import TYPE_CHECKING, Any

from loadgen.version import __version__

if TYPE_CHECKING:
    from loadgen.analysis.compare import JudgedComparison
    from loadgen.checks import Check, Verdict
    from loadgen.config.settings import RunSettings
    from loadgen.core.histogram import Histogram
    from loadgen.errors import BadInput, EngineError, GivenUp, LoadgenError, Unreachable
    from loadgen.lab.audit import Finding
    from loadgen.lab.library import SavedStudy, audit, load_study, tune, tune_sync
    from loadgen.library.compare import compare
    from loadgen.library.run import UnsavedResult, run, run_sync
    from loadgen.library.saved_files import SavedSeries, load, load_all, load_series
    from loadgen.library.search import search, search_sync
    from loadgen.library.watch import Watched, watch
    from loadgen.metrics.progress import Progress
    from loadgen.metrics.snapshot import Snapshot
    from loadgen.runner.run_result import Result, SavedResult, from_records
    from loadgen.workload.arrivals import Schedule
    from loadgen.workload.prompt import Dataset, Prompt


# Where each public name lives. They are imported when first used: `import loadgen` alone costs a few ms.
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
    "Watched": "library.watch",
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
    "watch": "library.watch",
}

__all__ = [
    "BadInput",
    "Check",
    "Dataset",
    "EngineError",
    "Finding",
    "GivenUp",
    "Histogram",
    "JudgedComparison",
    "LoadgenError",
    "Progress",
    "Prompt",
    "Result",
    "RunSettings",
    "SavedResult",
    "SavedSeries",
    "SavedStudy",
    "Schedule",
    "Snapshot",
    "Unreachable",
    "UnsavedResult",
    "Verdict",
    "Watched",
    "__version__",
    "audit",
    "compare",
    "from_records",
    "load",
    "load_all",
    "load_series",
    "load_study",
    "run",
    "run_sync",
    "search",
    "search_sync",
    "tune",
    "tune_sync",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

"""The public names, for type checkers; at run time `__init__.py` imports each when it is first
used.
"""

from loadgen.analysis.compare import JudgedComparison as JudgedComparison
from loadgen.checks import Check as Check
from loadgen.checks import Verdict as Verdict
from loadgen.config.settings import RunSettings as RunSettings
from loadgen.core.histogram import Histogram as Histogram
from loadgen.errors import BadInput as BadInput
from loadgen.errors import EngineError as EngineError
from loadgen.errors import GivenUp as GivenUp
from loadgen.errors import LoadgenError as LoadgenError
from loadgen.errors import Unreachable as Unreachable
from loadgen.lab.audit import Finding as Finding
from loadgen.lab.library import SavedStudy as SavedStudy
from loadgen.lab.library import audit as audit
from loadgen.lab.library import load_study as load_study
from loadgen.lab.library import tune as tune
from loadgen.lab.library import tune_sync as tune_sync
from loadgen.library.compare import compare as compare
from loadgen.library.run import UnsavedResult as UnsavedResult
from loadgen.library.run import Watched as Watched
from loadgen.library.run import run as run
from loadgen.library.run import run_sync as run_sync
from loadgen.library.run import watch as watch
from loadgen.library.saved_files import SavedSeries as SavedSeries
from loadgen.library.saved_files import load as load
from loadgen.library.saved_files import load_all as load_all
from loadgen.library.saved_files import load_series as load_series
from loadgen.library.search import search as search
from loadgen.library.search import search_sync as search_sync
from loadgen.metrics.progress import Progress as Progress
from loadgen.metrics.snapshot import Snapshot as Snapshot
from loadgen.runner.run_result import Result as Result
from loadgen.runner.run_result import SavedResult as SavedResult
from loadgen.runner.run_result import from_records as from_records
from loadgen.version import __version__ as __version__
from loadgen.workload.arrivals import Schedule as Schedule
from loadgen.workload.prompt import Dataset as Dataset
from loadgen.workload.prompt import Prompt as Prompt

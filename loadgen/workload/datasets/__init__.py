"""Data sets: where prompts come from, found by name.

A data set is a class with `from_settings(settings)` that meets the `Dataset` protocol. The built-in ones are known
here; other packages add theirs through the entry-point group `loadgen.datasets`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from loadgen.config.data import MULTI_TURN, TRACE, DataSettings
from loadgen.config.option import flag
from loadgen.errors import BadInput
from loadgen.workload.datasets import rules
from loadgen.workload.files.mapped_file import FIELD as PATH
from loadgen.workload.files.mapped_file import named
from loadgen.workload.prompt import Dataset

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from loadgen.config.settings import RunSettings

__all__ = ["Dataset", "DatasetClass", "create", "find"]

GROUP = "loadgen.datasets"
BUILT_IN = {
    "csv": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    "custom": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    "hf": "loadgen.workload.datasets.huggingface:HubDataset",
    "jsonl": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    MULTI_TURN: "loadgen.workload.datasets.multi_turn:MultiTurnDataset",
    "prefix_repetition": "loadgen.workload.datasets.prefix_repetition:PrefixRepetitionDataset",
    "prose": "loadgen.workload.datasets.prose:ProseDataset",
    "random": "loadgen.workload.datasets.random_words:RandomDataset",
    "sharegpt": "loadgen.workload.datasets.sharegpt:ShareGPTDataset",
    "sonnet": "loadgen.workload.datasets.prose:ProseDataset",
    TRACE: "loadgen.workload.datasets.trace:TraceDataset",
}

# Fields of the settings that only some of the built-in ones use: of the others they are refused, not ignored.
SESSIONS, TRACES = ("sharegpt", MULTI_TURN), (TRACE,)
WITHOUT_FILE = ("random", "prefix_repetition", MULTI_TURN)
USED_BY = {
    "dataset_path": tuple(name for name in BUILT_IN if name not in WITHOUT_FILE),
    "turns": SESSIONS,
    "think_time": SESSIONS,
    "history": SESSIONS,
    "trace_format": TRACES,
    "time_scale": TRACES,
}


class DatasetClass(Protocol):
    """What a name in the registry stands for: something that makes a data set out of a run's settings.

    Where making prompts costs more than reading them, it may also have `made_of(settings)`: the paths of the files that
    they depend on beside the settings, or None. Then they are kept between runs
    (`loadgen.workload.datasets.prompt_cache`); those of sessions, or with due times or server tokens of their own, are
    not.
    """

    def from_settings(self, settings: "RunSettings") -> Dataset:
        """Read what is needed and refuse what this data set cannot use, with `BadInput`, before anything is sent.

        What no data set can use, `find` has refused.
        """


def create(settings: "RunSettings") -> Dataset:
    """Make the data set that `settings.dataset_name` names, by its own rule or by `settings.dataset_rule`.

    Raises:
        BadInput: The name is unknown, it has no such rule, or its settings, file or tokenizer cannot be used.
    """
    return find(settings).from_settings(settings)


def find(settings: "RunSettings") -> DatasetClass:
    """Whose prompts they are: the data set of a name, or where a rule is named, the one that stands in for it.

    Raises:
        BadInput: There is none of that name or rule, or it cannot be imported; or it would ignore a setting, or no data
            set can use one; or what is to be its file is none.
    """
    kind = _named(settings.dataset_name)
    settings.check_data()
    _require_used(settings)
    if settings.dataset_name in BUILT_IN and settings.dataset_path is not None:
        named(PATH, settings.dataset_path)  # first: what is cached opens it before the data set does
    return kind if settings.dataset_rule is None else rules.find(settings.dataset_name, settings.dataset_rule)


def _require_used(settings: "RunSettings") -> None:
    name, defaults = settings.dataset_name, DataSettings()
    for field, users in USED_BY.items():
        if name in BUILT_IN and name not in users and getattr(settings, field) != getattr(defaults, field):
            raise BadInput(flag(field), f"{name} makes no use of it", f"leave it out, or take {' or '.join(users)}")
    if settings.dataset_rule is not None and settings.timed_by_data:
        raise BadInput(rules.FIELD, "no rule makes sessions of several turns, or traces", "leave it or --turns out")


def _named(name: str) -> DatasetClass:
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name].split(":")
        found: DatasetClass = getattr(import_module(module), attribute)
        return found
    installed = _installed()
    if name not in installed.names:
        from loadgen.workload.datasets.trace_file import FORMATS

        remedy = f"choose one of: {', '.join(sorted({*BUILT_IN, *installed.names}))}"
        if name in FORMATS:
            remedy = f"it is a trace, which keeps its times here: --dataset-name trace --trace-format {name}"
        raise BadInput("--dataset-name", f"there is no data set {name!r}", remedy)
    try:
        found = installed[name].load()
    except (ImportError, AttributeError) as error:
        problem = f"{name!r} cannot be loaded ({error})"
        raise BadInput("--dataset-name", problem, "repair the package that adds it") from error
    return found


def _installed() -> "EntryPoints":
    """Scan the installed packages: some 10 ms that a built-in name does not pay."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)

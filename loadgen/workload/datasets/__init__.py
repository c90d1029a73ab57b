"""The registry of data sets, by the name in `--dataset-name`.

A data set is a class with `from_settings(settings)` that implements the `Dataset` protocol. The
built-in ones are listed here; other packages add theirs through the entry-point group
`loadgen.datasets`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from loadgen.config.data import (
    AGENTIC,
    BATCHED,
    CUSTOM_IMAGE,
    HUB,
    MULTI_TURN,
    PREFIX_REPETITION,
    RANDOM_IMAGES,
    RERANK,
    TRACE,
    DataSettings,
)
from loadgen.config.run_fields import RunFields
from loadgen.config.settings import RunSettings
from loadgen.config.target import NO_HEADER
from loadgen.errors import BadInput, setting
from loadgen.util import packages
from loadgen.workload.datasets import rules
from loadgen.workload.files.mapped_file import DATASET_PATH, checked_path
from loadgen.workload.prompt import Dataset

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Dataset", "DatasetClass", "check", "create", "find"]

GROUP = "loadgen.datasets"
BUILT_IN = {
    AGENTIC: "loadgen.workload.datasets.agentic.agentic_dataset:AgenticDataset",
    CUSTOM_IMAGE: "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    "csv": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    "custom": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    "hf": "loadgen.workload.datasets.huggingface:HubDataset",
    "jsonl": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    MULTI_TURN: "loadgen.workload.datasets.multi_turn:MultiTurnDataset",
    PREFIX_REPETITION: "loadgen.workload.datasets.prefix_repetition:PrefixRepetitionDataset",
    "prose": "loadgen.workload.datasets.prose:ProseDataset",
    RERANK: "loadgen.workload.datasets.random_rerank:RandomRerankDataset",
    "random": "loadgen.workload.datasets.random_words:RandomDataset",
    RANDOM_IMAGES: "loadgen.workload.datasets.random_images:RandomImagesDataset",
    "sharegpt": "loadgen.workload.datasets.sharegpt:ShareGPTDataset",
    "sonnet": "loadgen.workload.datasets.prose:ProseDataset",
    "spec_bench": "loadgen.workload.datasets.huggingface:HubDataset",
    "speed_bench": "loadgen.workload.datasets.huggingface:HubDataset",
    "text": "loadgen.workload.datasets.ready_prompts:ReadyDataset",
    TRACE: "loadgen.workload.datasets.trace:TraceDataset",
}

# Fields that only some built-in data sets use. The others refuse them.
SESSIONS = ("sharegpt", MULTI_TURN, PREFIX_REPETITION, "jsonl", "csv")
GROUPED = (MULTI_TURN, PREFIX_REPETITION)
WITHOUT_FILE = ("random", RANDOM_IMAGES, RERANK, PREFIX_REPETITION, MULTI_TURN)
RECORDED = (TRACE, AGENTIC)
ENDLESS = (*WITHOUT_FILE, "prose", "sonnet")  # data sets that make as many prompts as are asked
SOUNDS = ("custom_audio",)  # data sets of vLLM that are not supported
USED_BY = {
    "dataset_path": tuple(name for name in BUILT_IN if name not in WITHOUT_FILE),
    "random_batch_size": BATCHED,
    "no_reranker": (RERANK,),
    "prefix_buckets": GROUPED,
    "prefix_zipf": GROUPED,
    "sharegpt_input_len": ("sharegpt",),
    "turns": SESSIONS,
    "think_time": SESSIONS,
    "history": SESSIONS,
    "trace_format": RECORDED,
    "time_scale": RECORDED,
    "max_think_time": (AGENTIC,),
    "trajectory_start": (AGENTIC,),
    "custom_ensure_client_side_data": (CUSTOM_IMAGE,),
    **dict.fromkeys(
        ("images", "image_sizes", "image_format", "image_content", "image_position"),
        (RANDOM_IMAGES,),
    ),
    **dict.fromkeys(
        ("trace_column", "trace_time_unit", "trace_block_size", "trace_times"), (TRACE,)
    ),
    "hf_name": HUB,
    "hf_where": HUB,
}
# What such a data set uses instead of a field.
INSTEAD = {("think_time", AGENTIC): "max_think_time"}
OF_SESSIONS = ("session_header", "session_token")  # fields of a run that need sessions


class DatasetClass(Protocol):
    """The class of a data set, as the registry returns it.

    If its prompts cost more to make than to read, it may have `made_of(settings)`: the paths of the
    files that they depend on beside the settings, or None. Prompts are then cached between runs
    (`loadgen.workload.datasets.prompt_cache`), unless they have sessions, due times or server
    tokens.

    A data set of a package may have options of its own in a mapping `options`: the help of each by
    its name. `settings.dataset_options` has their values.
    """

    def from_settings(self, settings: RunSettings) -> Dataset:
        """Create the data set: read its files, and raise `BadInput` for settings that it cannot
        use.

        `find` has checked what all data sets refuse.
        """


def create(settings: RunSettings) -> Dataset:
    """Create the data set of `settings.dataset_name`, with its own rule or `settings.dataset_rule`.

    Raises:
        BadInput: The name or rule is unknown, or its settings, file or tokenizer cannot be used.
    """
    return find(settings).from_settings(settings)


def check(settings: RunSettings) -> None:
    """Refuse settings that no data set can use, as far as this is seen before the data set is
    imported and made.

    Raises:
        BadInput: The name is unknown, a setting has no effect or is invalid, or its file is not a
            regular file.
    """
    if settings.dataset_name not in BUILT_IN:
        _entry(settings.dataset_name)
    settings.check_data()
    _require_used(settings)
    if settings.dataset_name in BUILT_IN and settings.dataset_path is not None:
        # First: the cache opens the file before the data set does.
        checked_path(DATASET_PATH, settings.dataset_path)


def check_sessions(settings: RunSettings, datasets: Sequence[RunSettings]) -> None:
    """Refuse flags of sessions where no data set of a run has any.

    Args:
        settings: The settings of the run.
        datasets: The settings of each data set.

    Raises:
        BadInput: Such a flag is given.
    """
    if any(dataset.dataset_name not in BUILT_IN or dataset.timed_by_data for dataset in datasets):
        return
    for field in OF_SESSIONS:
        if getattr(settings, field) not in (getattr(RunFields, field), NO_HEADER):
            remedy = (
                f"leave it out, or give {setting.turns}, or {setting.dataset_name} {MULTI_TURN} "
                f"or {AGENTIC}"
            )
            raise BadInput(setting(field), "has no effect without sessions", remedy)


def find(settings: RunSettings) -> DatasetClass:
    """Find the class of a data set by name, or by its rule.

    Raises:
        BadInput: As `check`; or the data set cannot be imported, or it or its rule does not have an
            option.
    """
    check(settings)
    name = settings.dataset_name
    kind = (
        packages.built_in(BUILT_IN[name])
        if name in BUILT_IN
        else packages.load(setting.dataset_name, _entry(name))
    )
    options: Mapping[str, str] = getattr(kind, "options", {})
    for option in settings.dataset_options.keys() - options.keys():
        listed = ", ".join(f"{allowed} ({about})" for allowed, about in options.items())
        remedy = (
            f"choose from {listed}" if options else "leave it out: this data set has no options"
        )
        problem = f"unknown option {option!r} of the data set {name}"
        raise BadInput(setting.dataset_arg, problem, remedy)
    dataset: DatasetClass = (
        kind if settings.dataset_rule is None else rules.find(name, settings.dataset_rule)
    )
    return _Batched(dataset) if name == "random" and settings.random_batch_size > 1 else dataset


class _Batched(Struct, frozen=True):
    """The class of a data set, with several of its prompts in each request.

    Attributes:
        texts: The class of the data set.
    """

    texts: DatasetClass

    def from_settings(self, settings: RunSettings) -> Dataset:
        from loadgen.workload.datasets.random_rerank import TextBatches

        return TextBatches(
            self.texts.from_settings(settings), settings.random_batch_size, settings.num_prompts
        )


def _require_used(settings: RunSettings) -> None:
    name, defaults = settings.dataset_name, DataSettings()
    for field, users in USED_BY.items():
        if field == "think_time" and settings.users is not None:
            continue  # they think between sessions, too
        if (
            name in BUILT_IN
            and name not in users
            and getattr(settings, field) != getattr(defaults, field)
        ):
            remedy = f"leave it out, or use {' or '.join(users)}"
            if (field, name) in INSTEAD:
                remedy = f"use {setting(INSTEAD[field, name])}"
            raise BadInput(setting(field), f"has no effect on the data set {name}", remedy)
    if settings.sharegpt_input_len is not None and settings.dataset_rule != "benchmark-runner":
        problem = f"has no effect without {setting.dataset_rule} benchmark-runner"
        raise BadInput(setting.sharegpt_input_len, problem, "leave it out, or give that rule")
    if settings.dataset_rule is not None and settings.timed_by_data:
        raise BadInput(
            rules.FLAG,
            "rules do not support sessions of several turns, or traces",
            f"leave it or {setting.turns} out",
        )


def _entry(name: str) -> "EntryPoint":
    """Find a data set that another package adds."""
    installed = packages.installed(GROUP)
    if name in installed.names:
        return installed[name]
    from loadgen.workload.datasets.agentic import agentic_dataset
    from loadgen.workload.datasets.trace import FORMATS

    if name in SOUNDS:
        raise BadInput(
            setting.dataset_name, f"{name}: audio is not supported", "use vLLM's own tool for it"
        )
    remedy = f"choose one of: {', '.join(sorted({*BUILT_IN, *installed.names}))}"
    if name in FORMATS:
        remedy = f"it is a trace: use {setting.dataset_name} trace {setting.trace_format} {name}"
    if name in agentic_dataset.FORMATS:
        remedy = (
            f"it is a format: use {setting.dataset_name} {AGENTIC} {setting.trace_format} {name}"
        )
    raise BadInput(setting.dataset_name, f"unknown data set {name!r}", remedy)

"""The number of prompts of a run if the data set limits it: with `--num-prompts -1`, or
`--no-oversample`.
"""

from itertools import islice

from loadgen.config.data import TRACE
from loadgen.config.load import ALL_PROMPTS
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload import datasets
from loadgen.workload.arrivals import DEFAULT_COUNT
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import Continued, Dataset, Timed

FLAG = setting.num_prompts


def with_known_count(settings: RunSettings, dataset: Dataset | None = None) -> RunSettings:
    """Return settings whose `num_prompts` is at most the number of prompts in the data set, if they
    ask for that.

    Args:
        settings: The settings of a run.
        dataset: A data set of the caller's, in place of the one that the settings name.

    Raises:
        BadInput: The data set cannot be used, or all prompts are asked of one without an end.
    """
    asks_all = settings.num_prompts == ALL_PROMPTS
    bounded = settings.num_prompts is not None or settings.duration is not None
    is_file_of_requests = (
        settings.dataset_name == TRACE and not settings.timed_by_data and not bounded
    )
    if not (asks_all or settings.no_oversample or is_file_of_requests):
        return settings
    if settings.no_oversample and settings.duration is not None:
        raise BadInput(
            setting.no_oversample,
            f"given together with {setting.duration}",
            f"give {setting.num_prompts} in place of {setting.duration}",
        )
    if dataset is None and settings.dataset_name in datasets.ENDLESS and not asks_all:
        return settings.replace(no_oversample=False)
    limit = None if asks_all or is_file_of_requests else settings.num_prompts or DEFAULT_COUNT
    return settings.replace(num_prompts=_available(settings, limit, dataset), no_oversample=False)


def _available(settings: RunSettings, limit: int | None, dataset: Dataset | None) -> int:
    name = settings.dataset_name
    if dataset is None and name in datasets.ENDLESS:
        raise BadInput(
            FLAG,
            f"is -1, and the data set {name} has no end",
            "give a number, or a data set with a file",
        )
    prompts = datasets.create(settings) if dataset is None else dataset
    if isinstance(prompts, Timed):
        return prompts.requests if limit is None else min(prompts.requests, limit)
    if not isinstance(prompts, Continued):
        raise BadInput(
            FLAG, "is -1, and the number of prompts in the data set is not known", "give a number"
        )
    if available := sum(1 for _ in islice(prompts.beyond(0), limit)):
        return available
    raise BadInput(
        DATASET_PATH, f"{settings.dataset_path} has no usable prompt", "give another file"
    )

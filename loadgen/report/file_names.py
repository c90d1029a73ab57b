"""Names of the files of a result and of a series: as asked, else as `vllm bench serve` names them."""

import re
from pathlib import Path

from loadgen.config.settings import RunSettings
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.series import Series

NOT_IN_NAMES = re.compile(r"[^\w.+=@-]")
MAX_PROFILE = 40  # characters of a profile
MAX_BYTES = 80  # of the label and of the model: most file systems allow 255 in all


def result_path(settings: RunSettings, numbers: RunNumbers) -> Path:
    """Return the path of a result: as asked, else named as `vllm bench serve` names it."""
    if settings.rate_profile is not None:
        rate = f"profile-{_in_name(settings.rate_profile)[:MAX_PROFILE]}"
    elif settings.ramp_up_strategy is None:
        rate = f"{float(settings.request_rate)}qps"
    else:
        start, end = settings.ramp_up_start_rps, settings.ramp_up_end_rps
        rate = f"ramp-up-{settings.ramp_up_strategy}-{start}qps-{end}qps"
    cap = f"-concurrency{settings.max_concurrency}" if settings.max_concurrency is not None else ""
    if settings.concurrency_profile is not None:
        cap = f"-concurrency-{_in_name(settings.concurrency_profile)[:MAX_PROFILE]}"
    model = _in_name(numbers.model_id.split("/")[-1])  # the server may have named it
    label = _in_name(settings.label or numbers.backend)
    name = settings.result_filename or f"{label}-{rate}{cap}-{model}-{numbers.date}.json"
    return Path(settings.result_dir or ".") / name


def series_path(settings: RunSettings, series: Series) -> Path | None:
    """Return the path of a series: as asked, else named beside the files of its runs; None where no result is saved.

    With --append-result, the file that is named holds the runs.
    """
    if not settings.saves_result:
        return None
    folder = Path(settings.result_dir or ".")
    if settings.result_filename and not settings.append_result:
        return folder / settings.result_filename
    first = series.points[0].result.numbers
    model = _in_name(first.model_id.split("/")[-1])
    label = _in_name(settings.label or first.backend)
    return folder / f"{label}-{series.kind}-{series.over}-{model}-{first.date}.json"


def _in_name(text: str) -> str:
    return NOT_IN_NAMES.sub("_", text).encode()[:MAX_BYTES].decode(errors="ignore")

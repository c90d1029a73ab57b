"""The header of the live view: the load of the run, and how the run stands so far, each in one line."""

import math

from loadgen.checks.sending import late_limit_ns
from loadgen.cli.live.history import History
from loadgen.cli.live.progress_line import OVERLOADED
from loadgen.cli.live.slo_so_far import LimitSoFar, State
from loadgen.config.settings import RunSettings
from loadgen.config.target import wants_simulator
from loadgen.core.sketch import Sketch
from loadgen.metrics.failures import Failures
from loadgen.metrics.progress import Progress
from loadgen.report import load_line
from loadgen.report.summary_line import Colour, Part
from loadgen.util.number_format import duration, plural

MAX_NAMED = 3  # limits of the SLO that are named


def load_text(settings: RunSettings, progress: Progress) -> str:
    """Describe what is asked, of which model.

    Args:
        settings: The settings of the run.
        progress: Has the number of scheduled requests.
    """
    size = plural(progress.scheduled, "request") if progress.scheduled else ""
    time = duration(settings.duration) if settings.duration is not None else ""
    spacing = f" ({load_line.spacing(settings.burstiness)})" if math.isfinite(settings.request_rate) else ""
    data = f"data set {settings.dataset_name}"
    if settings.dataset_name == "random":
        out = f", {settings.random_output_len} out" if settings.streams else ""
        data = f"random {settings.random_input_len} in{out}"
    parts = (
        "SIMULATED ENGINE" if wants_simulator(settings) else None,
        settings.model and (settings.served_model_name or settings.model),
        load_line.pace(settings) + spacing,
        load_line.cap(settings),
        data,
        " in ".join(filter(None, (size, time))),
    )
    return ", ".join(filter(None, parts))


def so_far(settings: RunSettings, progress: Progress, history: History, limits: list[LimitSoFar]) -> list[Part]:
    """Say how the run stands, the worst first: failures, overload, the SLO, and whether this client is on time.

    Args:
        settings: The settings of the run.
        progress: The latest progress.
        history: The run so far.
        limits: The limits of its SLO.
    """
    parts = [_outcomes(settings, progress)]
    if history.backlog.overloaded:
        parts.append((OVERLOADED, Colour.RED))
    if limits:
        parts.append(_slo(limits))
    parts.append(_client(progress.ttft if settings.streams else progress.e2el, progress))
    return sorted(parts, key=lambda part: part[1] is not Colour.RED)


def _outcomes(settings: RunSettings, progress: Progress) -> Part:
    failures = Failures.among({"ok": progress.ok, **progress.failures}, progress.never_due)
    if not failures.failed:
        return f"{progress.ok} ok, 0 failed", Colour.NONE
    if (failures.server_rate or 0.0) > settings.max_error_rate:
        return f"NOT OK: {failures.failed} of {failures.of} failed", Colour.RED
    return f"{failures.failed} of {failures.of} failed", Colour.YELLOW


def _slo(limits: list[LimitSoFar]) -> Part:
    by_state = {state: [so_far.limit.name for so_far in limits if so_far.state is state] for state in State}
    if missed := by_state[State.MISSED]:
        return f"SLO MISSED so far ({', '.join(missed[:MAX_NAMED])})", Colour.RED
    undecided = [so_far for so_far in limits if so_far.state is State.TOO_FEW]
    if by_state[State.CLOSE] or any(so_far.value is None for so_far in undecided):
        return "SLO cannot be told yet", Colour.YELLOW
    if beyond := [so_far.limit.name for so_far in undecided if not so_far.is_within]:
        return f"SLO beyond {', '.join(beyond[:MAX_NAMED])} so far, too few requests to be sure", Colour.YELLOW
    if undecided:
        return f"SLO met so far, {max(undecided, key=lambda so_far: so_far.needed).when_sure}", Colour.GREEN
    return "SLO met so far", Colour.GREEN


def _client(latency: Sketch, progress: Progress) -> Part:
    """Say whether requests were sent on time so far, by a latency of them; a run is SUSPECT if they were not."""
    p50_ms = latency.p50_ms
    limit_ms = late_limit_ns(None if p50_ms is None else p50_ms * 1e6) / 1e6
    if (late_ms := progress.lag.p99_ms or 0.0) > limit_ms:
        return f"SUSPECT: requests are sent {late_ms:.1f} ms late (p99)", Colour.YELLOW
    return "sent on time", Colour.NONE

"""Load line: what was measured, in a few words or in one line: the server and the load."""

import math
from collections.abc import Iterator

from loadgen.config.load_profile import CONCURRENCY, LoadProfile
from loadgen.config.settings import RunSettings
from loadgen.config.user_behavior import ThinkTime
from loadgen.report.result import RunResult
from loadgen.util.number_format import duration, plural

SAME = 0.01  # a count of tokens that differs by no more from what was asked
MAX_NAMED = 4  # classes, or phases
SPACINGS: dict[float | str, str] = {"inf": "evenly spaced", 1.0: "Poisson"}
MAX_SENDING_SHARE = 0.8  # of a run; a run that sends for longer does not say for how long


def title(result: RunResult) -> str:
    """Name the model, the servers and the load."""
    made = result.provenance
    at = f" at {made.target_urls}" if made.target_urls else ""
    return f"model {result.numbers.model_id}{at}: {text_of_settings(made.settings)}"


def text_of_settings(settings: RunSettings) -> str:
    """Describe the load that settings ask for, in a few words."""
    return ", ".join(filter(None, (pace(settings), cap(settings))))


def requested(settings: RunSettings) -> str:
    """Describe the requests that settings ask for, and the load."""
    lengths = f"{settings.random_input_len} tokens in and {settings.random_output_len} out"
    parts = (
        "" if settings.num_prompts is None else plural(settings.num_prompts, "request"),
        lengths if settings.dataset_name == "random" else f"{settings.dataset_name} data set",
        text_of_settings(settings),
    )
    return ", ".join(filter(None, parts))


def full_text(result: RunResult) -> str:
    """Describe requests, prompts, data set, arrivals, how long the run took, and the label."""
    settings = result.provenance.settings
    prompts = result.provenance.saved_prompts
    classes = settings.request_classes
    names = dict.fromkeys(
        settings.of_class(request_class).dataset_name for request_class in classes
    )
    images = prompts.get("images")
    data_set = f"{next(iter(names), settings.dataset_name)} data set"
    due_s = result.provenance.schedule.duration_s
    run_s = result.numbers.duration
    arrivals = f"{spacing(result.numbers.burstiness)} arrivals at {pace(settings)}"
    if settings.keeps_trace_times:
        arrivals = "arrivals of the trace"
    elif result.numbers.request_rate == "inf" and not settings.rate_changes:
        arrivals = pace(settings)
    says_sending = 0 < due_s < MAX_SENDING_SHARE * run_s and not result.partial
    parts = [
        _requests(result),
        *_tokens(result),
        f"data sets {', '.join(names)}" if len(names) > 1 else data_set,
        f"{images / prompts['requests']:.1f} images each" if images else "",
        _classes(result),
        arrivals,
        cap(settings),
        f"sent over {duration(due_s)}" if says_sending else "",
        f"duration {duration(run_s)}",
        f"label {settings.label}" if settings.label else "",
    ]
    return f"{', '.join(filter(None, parts))}."


def spacing(shape: float | str) -> str:
    """Describe the gaps between arrivals by their burstiness, as `RunNumbers` has it."""
    return SPACINGS.get(shape) or f"gamma-distributed (shape {shape:g})"


def _requests(result: RunResult) -> str:
    """Write how many requests there were; of a run that was cut short, how many of them were sent.

    Where time alone ends a closed loop, more sessions are prepared than begin.
    """
    scheduled = result.scheduled
    unsent = result.cancelled.never_sent
    schedule = result.provenance.schedule
    if unsent:
        return f"{scheduled - unsent} of {plural(scheduled, 'request')} sent"
    has_sessions = schedule.sessions not in (0, schedule.requests) and not _is_open_ended(result)
    return plural(scheduled, "request") + (
        f" in {plural(schedule.sessions, 'session')}" if has_sessions else ""
    )


def _is_open_ended(result: RunResult) -> bool:
    """Whether time alone ended a closed loop: more was prepared than was sent."""
    return result.closed_loop and result.provenance.settings.duration is not None


def _tokens(result: RunResult) -> Iterator[str]:
    """Write the mean lengths of prompts and answers of ok requests, and what was asked of the
    answers if it differs.
    """
    tokens = result.tokens
    ok = result.numbers.completed
    if not ok:
        return
    planned = not tokens.unplanned_requests
    prompts = tokens.planned_input_tokens if planned else result.numbers.total_input_tokens
    if not result.generates:
        if prompts is not None:
            yield f"{prompts / ok:.0f} tokens{_range(result, 'input_tokens')} on average"
        return
    answers = tokens.output_tokens
    requested = tokens.planned_output_tokens
    asked = not result.provenance.settings.no_max_tokens
    differs = asked and abs(requested - answers) > SAME * requested
    of_prompts = ""
    if prompts is not None:
        of_prompts = f"{prompts / ok:.0f} tokens in{_range(result, 'input_tokens')} and "
    beside = f" (asked: {requested / ok:.0f})" if differs else ""
    out = f"{answers / ok:.0f}{beside} out{_range(result, 'output_tokens')}"
    yield f"{of_prompts}{out} on average"


def _classes(result: RunResult) -> str:
    """Write how many requests each class was to get; of many classes, the range. Empty without
    classes.

    Where time alone ends a closed loop, the table of classes says how many each got.
    """
    counts = result.provenance.saved_prompts.get("classes")
    if not counts:
        return ""
    many = f"{len(counts)} classes" if len(counts) > MAX_NAMED else ""
    if _is_open_ended(result):
        return many or f"classes {', '.join(counts)}"
    if many:
        least, most = min(counts.values()), max(counts.values())
        return f"{many} with {least} to {most} requests each"
    return f"classes {', '.join(f'{name} ({count})' for name, count in counts.items())}"


def _range(result: RunResult, name: str) -> str:
    """Write from which range lengths of random prompts or answers were drawn; empty if all are
    the same.
    """
    drawn = result.provenance.saved_prompts.get(name)
    return (
        f" ({drawn[0]} to {drawn[1]})" if isinstance(drawn, list) and len(set(drawn)) == 2 else ""
    )


def pace(settings: RunSettings) -> str:
    """Write the rate, how it changes, or the trace; empty in a closed loop, which has only a
    cap.
    """
    requests, rate = ("sessions", "sessions/s") if settings.timed_by_data else ("requests", "req/s")
    if settings.rate_profile is not None:
        return _phases(settings.load_profile, rate)
    if settings.ramp_up_strategy is not None:
        return f"{settings.ramp_up_start_rps:g} to {settings.ramp_up_end_rps:g} {rate}"
    if settings.keeps_trace_times:
        return "a trace"
    if math.isinf(settings.request_rate):
        return f"all {requests} at once" if settings.max_concurrency is None else ""
    return f"{settings.request_rate:g} {rate}"


def _phases(profile: LoadProfile | None, unit: str) -> str:
    """Write a profile; of one with many phases, between which values it changes.

    Empty without one.
    """
    if profile is None:
        return ""
    if len(profile.phases) <= MAX_NAMED:
        return f"{profile} {unit}"
    low = min(min(phase.first, phase.last) for phase in profile.phases)
    high = max(max(phase.first, phase.last) for phase in profile.phases)
    return f"{low:g} to {high:g} {unit} in {len(profile.phases)} phases"


def cap(settings: RunSettings) -> str:
    """Write the most requests in flight; empty if there is no cap."""
    most = settings.max_concurrency
    if settings.concurrency_profile is not None:
        return _phases(settings.load_profile, CONCURRENCY.unit)
    if settings.users is not None:
        return (
            f"{plural(settings.users, 'user')}, think time {ThinkTime.parse(settings.think_time)}"
        )
    if most is None:
        return ""
    return f"at most {most} in flight" if pace(settings) else f"{plural(most, 'request')} in flight"

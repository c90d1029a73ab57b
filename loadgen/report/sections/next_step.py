"""Next step: what to do after a run, in one sentence, and what other results say in its words."""

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from msgspec import UNSET

from loadgen.checks import (
    BUSY_MACHINE,
    PAST_THE_END,
    PILE_UP,
    SERVER_HUNG,
    TOO_FEW_FOR_SLO,
    Check,
    Verdict,
)
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import is_failure
from loadgen.report.result import RunResult
from loadgen.report.run_state import MAX_NAMED, State, state_of, values_of
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import percentile

FLAGS = "the other flags as they were"  # of a command that is to be given
LEVELS = {"rate": "request_rate", "concurrency": "max_concurrency"}  # the settings of a level
# What to do about each outcome, by the beginning of its name; the first that fits.
ADVICE = {
    "status(401)": "set a valid API key with --api-key, or in OPENAI_API_KEY",
    "status(403)": "give an API key that may use this model with --api-key",
    "status(404)": "check --base-url, --endpoint, --backend and --model",
    "status(429)": "the server limits the rate: lower --rate, or send again with --retry",
    "status(5": "read the log of the server",
    "status": "read the message of the server above, and change the request",
    "refused": "check that the server is running and that --base-url is right",
    "dns_error": "check the host in --base-url",
    "connect_timeout": "check that the host can be reached, and --base-url",
    "tls_error": "check the certificate of the server and --ca-cert, or give --insecure",
    "timeout_first_token": "raise --first-token-timeout, or lower the load",
    "timeout": "raise --timeout, or lower the load",
    "stalled": "read the log of the server",
    "truncated": "read the log of the server, and of any proxy in between",
    "protocol_error": "check --endpoint and --backend",
    "client_error": "see the message; `loadgen doctor` names the limits of this machine",
}
IDLE = "repeat on an idle machine"
# Checks that say what is wrong, and what to do, where a run is in a state.
PROBLEMS = {State.OVERLOADED: (PAST_THE_END, PILE_UP)}


def after_run(result: RunResult) -> str:
    """Say what to do after a run; empty if nothing would be both true and useful."""
    wrong = next(iter(result.failed_checks), None)
    is_busy = wrong is None or any(check.name in BUSY_MACHINE for check in result.failed_checks)
    match state_of(result):
        case State.FAILED:
            return _after_failure(result)
        case State.INVALID:
            return wrong.advice if wrong else ""
        case State.SUSPECT:
            advice = [IDLE] if is_busy else []
            advice += [wrong.advice] if wrong else []
            return f"do not rely on these figures: {'; '.join(advice)}"
        case State.OK:
            return _after_success(result)
        case state:
            step = AFTER[state](result)
            return "; then ".join(filter(None, ([IDLE] if wrong and is_busy else []) + [step]))


def on_failures(outcomes: Mapping[str, int]) -> str:
    """Say what to do about requests that failed, the most frequent way first; empty if nothing is
    known.

    Args:
        outcomes: Requests by how they ended.
    """
    ways = sorted(filter(is_failure, outcomes), key=lambda name: -outcomes[name])
    return "; ".join(list(dict.fromkeys(filter(None, map(advice_on, ways))))[:MAX_NAMED])


def advice_on(outcome: str) -> str:
    """Say what to do where requests ended in this way; empty if nothing is known."""
    return next((text for begin, text in ADVICE.items() if outcome.startswith(begin)), "")


def search_command(limits: str, over: str, first: float | None = None) -> str:
    """Write the command that finds the highest load within limits.

    Args:
        limits: The SLO.
        over: rate or concurrency.
        first: The level to begin with; None: the search chooses it.
    """
    flags = " --over concurrency" if over == "concurrency" else ""
    if first is not None:
        flags += f" {flag(LEVELS[over])} {first:g}"
    return f'`loadgen search{flags} --slo "{limits}"`, with {FLAGS}'


def once_valid(step: str, failed_checks: Collection[str], verdict: str) -> str:
    """Say what to do after several runs that may be SUSPECT: first measure again, then `step`.

    Args:
        step: What to do once the runs are VALID; empty: nothing.
        failed_checks: The names of the checks that failed in the runs.
        verdict: The worst of the runs.
    """
    if verdict != Verdict.SUSPECT:
        return step
    is_machine = not failed_checks or any(name in BUSY_MACHINE for name in failed_checks)
    again = IDLE if is_machine else "remove the reasons of SUSPECT, repeat"
    return f"{again}; then {step}" if step else again


def _failed(result: RunResult, *names: str) -> Check | None:
    """Return the first check of these names that failed."""
    return next(
        (check for check in result.checks if check.ok is False and check.name in names), None
    )


def _requests_flag(result: RunResult, needed: int) -> str:
    """Write the flag that sends as many requests as a percentile needs."""
    duration_s = result.provenance.settings.duration
    if duration_s is None:
        return f"`--num-prompts {needed}`"
    return f"`--duration {math.ceil(duration_s * needed / max(values_of(result), 1))}`"


def _after_failure(result: RunResult) -> str:
    gone_s = result.no_answer_since_s
    if gone_s is not None and result.numbers.completed:
        at = f"{gone_s:.1f} s of the run"
        if (start_s := result.numbers.benchmark_start_time_unix) is not UNSET:
            clock = datetime.fromtimestamp(start_s + gone_s, UTC)
            at = f"about {clock:%H:%M:%S} UTC ({gone_s:.1f} s into the run)"
        return f"read the log of the server at {at}, and start it again"
    if hung := _failed(result, SERVER_HUNG):
        return hung.advice
    return on_failures(result.outcomes) or "let a run go on until requests end"


def _after_overload(result: RunResult) -> str:
    problem = _failed(result, *PROBLEMS[State.OVERLOADED])
    return problem.advice if problem else "use a lower rate"


def _after_too_few(result: RunResult) -> str:
    few = _failed(result, TOO_FEW_FOR_SLO)
    if few is None:
        return _after_success(result)
    return f"{few.advice}: {_requests_flag(result, int(few.allowed or 0))}"


def _after_a_miss(result: RunResult) -> str:
    if any(row.beyond for row in result.slo) and (advice := on_failures(result.outcomes)):
        return advice
    settings = result.provenance.settings
    if not settings.slo or not _is_searchable(settings):
        return "lower the load, or make the server faster"
    what, command = _search(settings, settings.slo)
    return f"lower the load; find the highest {what} that meets the SLO: {command}"


def _after_success(result: RunResult) -> str:
    settings = result.provenance.settings
    needs = {p: least_samples(p) for p in (50, 99) if values_of(result) < least_samples(p)}
    if needs:
        why = ", ".join(f"{needed} for {percentile(p)}" for p, needed in needs.items())
        return f"send at least {why}: {_requests_flag(result, needs[99])}"
    if result.simulated and not settings.slo:
        return "measure your own server: `loadgen run --base-url URL`"
    if not _is_searchable(settings):
        return ""
    metric = "ttft" if result.streams else "e2el"
    what, command = _search(settings, settings.slo or f"{metric}_p99<500ms")
    limits = "that meets the SLO" if settings.slo else "within limits of yours"
    return f"find the highest {what} {limits}: {command}"


def _search(settings: RunSettings, limits: str) -> tuple[str, str]:
    """Name what a search would find, and write its command."""
    is_closed = math.isinf(settings.request_rate) and settings.max_concurrency is not None
    over = "concurrency" if is_closed else "rate"
    return over, search_command(limits, over)


def _is_searchable(settings: RunSettings) -> bool:
    """Whether the load is one level, which a search may vary."""
    return not (
        settings.rate_changes
        or settings.keeps_trace_times
        or settings.timed_by_data
        or settings.users is not None
        or settings.random_batch_size > 1
        or any(request_class.slo for request_class in settings.request_classes)
    )


# What to do in the states that are about the server, once the machine is idle.
AFTER = {
    State.OVERLOADED: _after_overload,
    State.TOO_FEW: _after_too_few,
    State.SLO_MISSED: _after_a_miss,
}

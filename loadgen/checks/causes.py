"""Causes: why a figure is not exact, and what helps, by what was counted during the run."""

from loadgen.checks.sending import because, relief
from loadgen.config import slo
from loadgen.metrics.run_data import RunData
from loadgen.metrics.statistic import client_error_ms
from loadgen.util.number_format import ms, percent, plural

GROUPED = (
    "the server, or a proxy, sends several tokens one right after the other, and the client read "
    "them at once: only the last of them has an exact time; read the E2EL, which ends with it"
)


def cause_of(metric: str, statistic: str, error_ms: float, run: RunData, failed: int = 0) -> str:
    """Say what adds most to the error of a figure, and what helps.

    Args:
        metric: ttft, ttfo, tpot, itl, icl or e2el.
        statistic: mean, median, max or a percentile such as p99.
        error_ms: How far the figure can be from the truth, ms.
        run: The run.
        failed: How many failed requests the figure counts as slower than all others.
    """
    snapshot, counters = run.snapshot, run.snapshot.counters
    from_sent = client_error_ms(snapshot, slo.distribution(metric, "sent"), statistic, failed)
    is_due = run.settings.latency_from == "due"
    lag_ms = error_ms - from_sent if is_due and from_sent is not None else 0.0
    clock_ms = (run.client.clock_width_ns or 0) / 1e6
    # The rest is of tokens without an exact time; those that nothing else explains came in groups.
    rest_ms = (error_ms - lag_ms - clock_ms) / max(1, counters["inexact_events"])
    network, unstamped = counters["reordered_events"], counters["user_stamped_events"]
    grouped = counters["inexact_events"] - network - unstamped - counters["late_events"]
    parts_ms = {
        _left_late(run): lag_ms,
        _slow_clock(run): clock_ms,
        _network(run): rest_ms * network,
        _unstamped(run): rest_ms * unstamped,
        _read_late(run): rest_ms * counters["late_events"],
        GROUPED: rest_ms * grouped,
    }
    return max(parts_ms, key=parts_ms.__getitem__)


def _left_late(run: RunData) -> str:
    lag = run.snapshot.histograms["lag"].percentile(99)
    return f"{because(relief(run), run)}: requests were sent late (lag p99 {ms(lag)})"


def _slow_clock(run: RunData) -> str:
    width = ms(run.client.clock_width_ns)
    return (
        f"to read the clock of this machine twice takes {width}: `loadgen doctor` names its clock "
        "source"
    )


def _network(run: RunData) -> str:
    return (
        f"{_share('reordered_events', run)} waited for segments that the network lost or delayed; "
        "when these came is known no better than when they were read"
    )


def _unstamped(run: RunData) -> str:
    return (
        f"{_share('user_stamped_events', run)} have no stamp of the kernel's, only the time at "
        "which they were read"
    )


def _read_late(run: RunData) -> str:
    late = _share("late_events", run)
    return because(f"{late} were read late, and others came in the meantime: {relief(run)}", run)


def _share(counter: str, run: RunData) -> str:
    """The number and the share of the tokens that a counter of the run has counted."""
    counters = run.snapshot.counters
    count = counters[counter]
    return f"{plural(count, 'token')} ({percent(count / max(1, counters['token_events']), 1)})"

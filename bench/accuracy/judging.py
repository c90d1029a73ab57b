"""Judging: each token beside the server's write of it, and each printed figure beside the same
figure of the truth.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.accuracy.measuring import Finding, Int64s, Run, ms, us
from loadgen.checks.distortion import allowed_ms
from loadgen.metrics.statistic import statistic_ms
from loadgen.runner.run_result import Result

MEDIAN_NS, P99_NS, LOADED_P99_NS = 15_000, 60_000, 100_000
TOKENS_BOUND = "every token within its interval; exact ones: p50 <= 15 us, p99 <= {:.0f} us"
BOUND = "every figure within its client error; " + TOKENS_BOUND.format(LOADED_P99_NS / 1e3)
# The plan of runs under disturbances: first token and gaps, ms.
PLAN = {"first_ms": 20.0, "gap_ms": 4.0}
# One token in each event.
ALIASES = {"ttfo_due": "ttft_due", "ttfo_sent": "ttft_sent", "tpot_n1": "tpot", "itl": "icl"}


class Claim(NamedTuple):
    """A printed figure, ms.

    Attributes:
        name: The latency.
        statistic: mean, or a percentile such as p99.
        value_ms: As it is printed.
        claimed_ms: Its client error.
        true_ms: How far it is from the truth.
    """

    name: str
    statistic: str
    value_ms: float
    claimed_ms: float
    true_ms: float

    @property
    def holds(self) -> bool:
        """Whether the client error covers the true one."""
        return self.true_ms <= self.claimed_ms

    @property
    def excess(self) -> float:
        """The client error as a multiple of what a VALID run is allowed."""
        return self.claimed_ms / allowed_ms(self.value_ms)

    def __str__(self) -> str:
        about = f"{self.statistic} {self.name} off by {self.true_ms:.3f} of {self.value_ms:.3f} ms"
        return f"{about}, claimed {self.claimed_ms:.3f}"


def claims(run: Run) -> list[Claim]:
    """Return every printed mean and percentile of a run, with the client error and the true one."""
    printed, bounds, found = run.result.snapshot.histograms, run.result.client_error_ms, []
    assert bounds is not None
    true = truths(run)
    for name in (*true, *ALIASES):
        least, greatest = true[ALIASES.get(name, name)]
        for statistic, claimed in bounds.named(name).items():
            value = statistic_ms(printed[name], statistic)
            assert value is not None
            assert claimed is not None
            low, high = _statistic(least, statistic), _statistic(greatest, statistic)
            found.append(
                Claim(name, statistic, value, claimed, max(0.0, low - value, value - high))
            )
    return found


def truths(run: Run) -> dict[str, tuple[Int64s, Int64s]]:
    """Return the least and the greatest that each latency truly was, by name, ns.

    A request left during the client's call of `send`, and a token during the server's.
    """
    tokens = int(run.counts[0])
    assert np.all(run.counts == tokens)
    begun, done = run.write_ns.reshape(-1, tokens), run.written_ns.reshape(-1, tokens)
    first, last, due = (
        (begun[:, 0], done[:, 0]),
        (begun[:, -1], done[:, -1]),
        (run.due_ns, run.due_ns),
    )
    sent = run.sent_ns, run.left_ns
    least_span, greatest_span = _between(first, last)
    return {
        "ttft_due": _between(due, first),
        "ttft_sent": _between(sent, first),
        "e2el_due": _between(due, last),
        "e2el_sent": _between(sent, last),
        "tpot": (least_span // (tokens - 1), greatest_span // (tokens - 1)),
        "icl": _between(
            (begun[:, :-1].ravel(), done[:, :-1].ravel()),
            (begun[:, 1:].ravel(), done[:, 1:].ravel()),
        ),
    }


def stamps(run: Run, p99_ns: int = LOADED_P99_NS) -> Finding:
    """Judge the stamp of each token."""
    after_ns = run.stamps_ns - run.write_ns
    assert np.all(after_ns >= 0), "seen before it was written"
    tokens, exact, held = len(after_ns), run.is_exact, run.is_held_back
    outside = int(np.sum(~run.is_covered & ~held))
    by_user = run.result.snapshot.counters["user_stamped_events"] / tokens
    told = f"{exact.mean():.2%} exact"
    median = p99 = 0.0
    if exact.any():
        median, p99 = np.percentile(run.errors_ns[exact], (50, 99))
        p50_after, p99_after = np.percentile(after_ns[exact], (50, 99))
        told += (
            f", error p50 {us(median)}, p99 {us(p99)} ({us(p50_after)}, {us(p99_after)} after "
            "the write began)"
        )
    late_ns = np.percentile(run.read_ns - run.stamps_ns, 99)
    told += (
        f"; {1 - exact.mean() - by_user:.2%} read together, {by_user:.2%} by user; read p99 "
        f"{ms(late_ns)} later"
    )
    if held.any():
        told += (
            f"; {held.mean():.2%} were held back by the server's TCP, as the client had not read"
        )
    if outside:
        told += f"; {outside} of {tokens} outside of their intervals"
    return Finding(told, bool(outside == 0 and median <= MEDIAN_NS and p99 <= p99_ns))


def judge(row: Callable[..., None], load: str, run: Run) -> None:
    """Add the row of a run whose figures and tokens have to be as exact as it claims, whatever
    its verdict.
    """
    found, figures = stamps(run), claims(run)
    worst = max(figures, key=lambda claim: claim.true_ms / claim.claimed_ms)
    kept = sum(claim.holds for claim in figures)
    told = (
        f"{kept} of {len(figures)} figures; nearest to its bound: {worst}; "
        f"{verdict(run.result)}; {found.measured}"
    )
    row(load, told, BOUND, found.met and kept == len(figures))


def verdict(result: Result) -> str:
    """Name the verdict of a result and the checks that decided it."""
    failed = ", ".join(check.name for check in result.failed_checks)
    return f"{result.verdict}: {failed}" if failed else str(result.verdict)


def _between(start: tuple[Int64s, Int64s], end: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Return the least and the greatest time between two moments, of each of which the bounds
    are known.
    """
    return end[0] - start[1], end[1] - start[0]


def _statistic(values_ns: Int64s, statistic: str) -> float:
    """Compute a mean or a percentile, ms."""
    return (
        float(
            values_ns.mean()
            if statistic == "mean"
            else np.percentile(values_ns, float(statistic[1:]))
        )
        / 1e6
    )

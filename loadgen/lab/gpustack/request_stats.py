"""Per-request numbers as guidellm defines them, from the records of a run, and their distributions.

A percentile is the smallest value at which the cumulative weight is reached: guidellm's definition,
without interpolation. If nothing was measured, `count` and all other numbers are 0: GPUStack's
reader accepts no null.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.util.arrays import Floats
from loadgen.util.terminal_text import printable

PERCENTILES = {
    "p001": 0.1,
    "p01": 1,
    "p05": 5,
    "p10": 10,
    "p25": 25,
    "p50": 50,
    "p75": 75,
    "p90": 90,
    "p95": 95,
    "p99": 99,
    "p999": 99.9,
}
STATISTICS = ("mean", "median", "mode", "variance", "std_dev", "min", "max")
WINDOW_S = 1.0  # the window of a rate; between neighboring events a rate is arbitrary
STATUSES = ("successful", "errored", "incomplete")
SAMPLES = 20  # errored and incomplete requests that are listed one by one
MS = 1e6  # ns


def distribution(
    values: ArrayLike, weights: ArrayLike | None = None, count: int | None = None
) -> dict[str, Any]:
    """Return the distribution of weighted values.

    Args:
        values: Shape (n,), in the unit of the result.
        weights: Shape (n,), at least 0; 1 by default.
        count: Observations; the sum of the weights by default.
    """
    array = np.asarray(values, dtype=np.float64)
    weighted = np.ones_like(array) if weights is None else np.asarray(weights, dtype=np.float64)
    of = Distribution(array[weighted > 0], weighted[weighted > 0], steps=True)
    mean, (distinct, counts) = of.mean, of.distinct
    if mean is None:
        nothing = dict.fromkeys(STATISTICS, 0.0) | {"count": 0, "total_sum": 0.0}
        return nothing | {"percentiles": dict.fromkeys(PERCENTILES, 0.0), "pdf": None}
    at = {name: of.percentile(p) for name, p in PERCENTILES.items()}
    variance = float(np.sum((distinct - mean) ** 2 * counts) / np.sum(counts))
    count = round(float(weighted.sum())) if count is None else count
    return {
        "mean": mean,
        "median": at["p50"],
        "mode": float(distinct[np.argmax(counts)]),
        "variance": variance,
        "std_dev": math.sqrt(variance),
        "min": float(distinct[0]),
        "max": float(distinct[-1]),
        "count": count,
        "total_sum": mean * count,
        "percentiles": at,
        "pdf": None,
    }


def rates(times_s: ArrayLike, amounts: ArrayLike, start_s: float, end_s: float) -> dict[str, Any]:
    """Return the distribution of rates per second over equal windows of at least WINDOW_S.

    The mean is the total amount divided by the length of the run.

    Args:
        times_s: The times of events, shape (n,); those before `start_s` or after `end_s` do not
            count.
        amounts: The amount of each event, shape (n,).
        start_s: The start of the run, seconds on any clock.
        end_s: The end of the run.
    """
    added = np.asarray(amounts, dtype=np.float64)
    if not len(added) or end_s <= start_s:
        return distribution(())
    windows = max(int((end_s - start_s) / WINDOW_S), 1)
    sums, _ = np.histogram(times_s, bins=windows, range=(start_s, end_s), weights=added)
    return distribution(sums * windows / (end_s - start_s), count=round(float(sums.sum())))


def concurrency(starts_s: Floats, ends_s: Floats, start_s: float, end_s: float) -> dict[str, Any]:
    """Return the distribution of the number of overlapping intervals, weighted by time.

    Args:
        starts_s: The starts of the intervals, shape (n,), not before `start_s`.
        ends_s: Their ends, shape (n,), not after `end_s`.
        start_s: The start of the run, seconds on any clock.
        end_s: The end of the run.
    """
    if not len(starts_s):
        return distribution(())
    times = np.concatenate((starts_s, ends_s))
    steps = np.repeat((1, -1), len(starts_s))
    order = np.argsort(times)  # the order of simultaneous steps does not matter: they last no time
    levels = np.concatenate(((0,), np.cumsum(steps[order])))
    durations_s = np.diff(np.concatenate(((start_s,), times[order], (end_s,))))
    return distribution(levels, durations_s, count=len(starts_s))


@dataclass
class Requests:
    """The numbers of all requests of one status, with one entry per request unless noted otherwise.

    Times are CLOCK_MONOTONIC ns.

    Attributes:
        start: When the request was sent; if it could not be sent, when its slot was free.
        end: When it was closed.
        prompt_tokens: Prompt tokens counted by the server, or else the expected ones.
        output_tokens: Output tokens.
        events: Events that bear tokens.
        token_times: The times of events, an array per request with a token.
        token_counts: The tokens of each event, an array per request with a token.
        gaps_ms: The gaps between events, an array per request with a token.
        ttft_ms: From sent to the first token; only requests with a token.
        first: The time of the first token; only requests with a token.
        first_prompts: Prompt tokens; only requests with a token.
        tpot_ms: From sent to the last token, divided by output tokens; only requests with a token.
        tpot_tokens: Output tokens; only requests with a token.
        itl_ms: From the first to the last token, divided by the output tokens after the first; only
            requests with two.
        itl_tokens: Output tokens after the first; only requests with two.
        samples: The first SAMPLES records.
    """

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    token_times: list[NDArray[np.int64]] = field(default_factory=list)
    token_counts: list[NDArray[np.float64]] = field(default_factory=list)
    gaps_ms: list[NDArray[np.float64]] = field(default_factory=list)
    ttft_ms: list[float] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    first_prompts: list[int] = field(default_factory=list)
    tpot_ms: list[float] = field(default_factory=list)
    tpot_tokens: list[int] = field(default_factory=list)
    itl_ms: list[float] = field(default_factory=list)
    itl_tokens: list[int] = field(default_factory=list)
    samples: list[Record] = field(default_factory=list)

    @property
    def latency_s(self) -> list[float]:
        """The times from start to end."""
        return [(end - start) / 1e9 for start, end in zip(self.start, self.end, strict=True)]

    def add(self, record: Record) -> None:
        """Add a request that was sent, or could not be."""
        start = record.sent or record.ready or record.due
        tokens = record.answer_tokens
        prompt = (
            record.prompt_tokens if record.prompt_tokens >= 0 else max(record.expected_tokens, 0)
        )
        self.start.append(start)
        self.end.append(record.closed)
        self.prompt_tokens.append(prompt)
        self.output_tokens.append(tokens)
        self.events.append(record.events)
        if len(self.samples) < SAMPLES:
            self.samples.append(record)
        if not record.events:
            return
        self.first.append(record.first_token)
        self.first_prompts.append(prompt)
        self.ttft_ms.append((record.first_token - record.sent) / MS)
        self.tpot_ms.append((record.last_token - record.sent) / MS / max(tokens, 1))
        self.tpot_tokens.append(tokens)
        if tokens > 1 and record.events > 1:
            self.itl_ms.append((record.last_token - record.first_token) / MS / (tokens - 1))
            self.itl_tokens.append(tokens - 1)
        times = np.frombuffer(record.marks, dtype=np.int64)
        counts = np.array(record.token_counts or np.ones(len(times)), dtype=np.float64)
        self.token_times.append(times)
        self.token_counts.append(counts * (tokens / counts.sum()))
        self.gaps_ms.append(np.diff(times) / MS)

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})


def by_status(records: Iterable[Record]) -> dict[str, Requests]:
    """Group requests by STATUSES; guidellm does not count requests that were cancelled before
    they were sent.
    """
    groups = {status: Requests() for status in STATUSES}
    for record in records:
        if record.sent or record.outcome is not Outcome.CANCELLED:
            groups[status(record)].add(record)
    return groups


def status(record: Record) -> str:
    """Return guidellm's name for the outcome of a request."""
    if record.outcome is Outcome.OK:
        return "successful"
    return "incomplete" if record.outcome is Outcome.CANCELLED else "errored"


def sample(record: Record, wall_ns: int, path: str) -> dict[str, Any]:
    """Return a failed request in guidellm's format.

    Args:
        record: The record of the request.
        wall_ns: The offset from CLOCK_MONOTONIC to the time since 1970, ns.
        path: The path of the API.
    """

    def stamp(at: int) -> float | None:
        return (at + wall_ns) / 1e9 if at else None

    text = f"{record.outcome}{f' {record.status}' if record.status else ''}: {record.detail or ''}"
    return {
        "type_": "generative_request_stats",
        "request_id": str(record.index),
        "request_type": "chat_completions"
        if path.endswith("chat/completions")
        else "text_completions",
        "info": {
            "request_id": str(record.index),
            "status": "cancelled" if record.outcome is Outcome.CANCELLED else "errored",
            "error": printable(text.removesuffix(": ")),
            "timings": {
                "targeted_start": stamp(record.due),
                "request_start": stamp(record.sent),
                "first_token_iteration": stamp(record.first_token),
                "last_token_iteration": stamp(record.last_token),
                "token_iterations": record.events,
                "request_end": stamp(record.closed),
            },
        },
        "input_metrics": {
            "text_tokens": record.prompt_tokens if record.prompt_tokens >= 0 else None
        },
        "output_metrics": {"text_tokens": record.answer_tokens if record.events else None},
    }

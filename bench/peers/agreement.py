"""Agreement: the figures of two results under the same names, and whether they agree where they
mean the same.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from scipy.stats import t as student

from bench.peers.quiet import all_disturbed, median
from bench.table import figure

FROM_DUE = "mean_ttft_due_ms"  # in no result: made of what each tells
SHARE, MS = 0.02, 1.0  # figures agree within 2 %, and times also within a millisecond
CONFIDENCE = 0.95

DURATION = "the clock starts a gap before the first request there, with the first request here"
ROLE = "the role chunk counts as the first token there"
CHUNKS = "every chunk counts there, those with tokens here"
SECONDS = "whole seconds there, any second here"
ACTIVE = "requests that touch a whole second there, in flight at once here"
PACED = "not judged: under a cap a tool's own delays are part of the load"
AGREE, DISAGREE, NOT_TOLD = (
    "agree",
    "**DISAGREE**",
    "no significant difference: the server varies more",
)
QUEUED = "the wait before the cap stands apart there, in from-due times here"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of both results.

    Attributes:
        key: In the result.
        name: In tables.
        differs: Why the two mean something else; empty: they mean the same, and must agree.
    """

    key: str
    name: str
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """One run of one tool.

    Attributes:
        data: Its figures by key; those that it does not tell are not there.
        others_s: Processor time that others used meanwhile.
        says: What it says of itself.
    """

    data: Mapping[str, float]
    others_s: float
    says: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of two tools.

    A server is faster in one minute than in the next. So the tools are compared within each round,
    and what differs by more than it may is told apart only where the rounds agree that it does.

    Attributes:
        metric: Which.
        theirs, ours: Medians; None: not told.
        apart: Mean of ours - theirs over the rounds.
        within: Half of its 95 % interval, by Student's t; infinite of a single round.
    """

    metric: Metric
    theirs: float | None
    ours: float | None
    apart: float = 0.0
    within: float = 0.0

    @classmethod
    def of(cls, metric: Metric, theirs: Sequence[Kept], ours: Sequence[Kept]) -> Self:
        """A metric of the runs of two tools, of which those of a round stand at the same place."""
        medians = (median(runs, lambda run: run.data.get(metric.key)) for runs in (theirs, ours))
        rounds = [
            (a, b)
            for a, b in zip(theirs, ours, strict=True)
            if not all_disturbed([a]) and not all_disturbed([b])
        ]
        found = [
            (a.data.get(metric.key), b.data.get(metric.key))
            for a, b in rounds or zip(theirs, ours, strict=True)
        ]
        differences = [b - a for a, b in found if a is not None and b is not None]
        return cls(metric, *medians, *_interval(differences))

    @property
    def bound(self) -> float:
        """How far apart two figures of the same meaning may be."""
        share = SHARE * abs(self.theirs or 0.0)
        return max(share, MS) if self.metric.key.endswith("_ms") else share

    @property
    def judgement(self) -> str:
        """Whether they mean the same and are near enough, are not, or the rounds do not tell."""
        if self.metric.differs:
            return self.metric.differs
        if self.theirs is not None and self.ours is not None:
            if abs(self.apart) <= self.bound:
                return AGREE
            if abs(self.apart) - self.within <= self.bound:
                return NOT_TOLD
        return DISAGREE

    @property
    def cells(self) -> tuple[str, ...]:
        """As tables show it."""
        if self.theirs is None or self.ours is None:
            apart = "n/a"
        else:
            apart = f"{self.apart:+,.2f}" + (
                f" ± {figure(self.within)}" if 0 < self.within < math.inf else ""
            )
            # A share of a spread tells nothing.
            has_share = self.theirs and not self.metric.key.startswith("std_")
            apart += f", {100 * self.apart / self.theirs:+.1f} %" if has_share else ""
        return self.metric.name, figure(self.theirs), figure(self.ours), apart, self.judgement


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean of some values, and half of its interval."""
    if len(values) < 2:
        return (values[0], math.inf) if values else (0.0, math.inf)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), float(
        student.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    ) * error


def metrics(*, chat: bool, judged: bool) -> list[Metric]:
    """All metrics of `vllm bench serve` that loadgen prints under the same names.

    Args:
        chat: Of a chat, which begins with a role chunk.
        judged: Whether latencies must agree: at low load, where both tools make the same load.
    """
    paced = "" if judged else PACED
    first, gaps = (ROLE, CHUNKS) if chat else ("", "")
    found = [
        Metric("completed", "successful requests"),
        Metric("failed", "failed requests"),
        Metric("total_input_tokens", "input tokens"),
        Metric("total_output_tokens", "output tokens"),
        Metric("duration", "duration (s)", DURATION),
        Metric("request_throughput", "requests/s", DURATION),
        Metric("output_throughput", "output tokens/s", DURATION),
        Metric("total_token_throughput", "all tokens/s", DURATION),
        Metric("max_output_tokens_per_s", "peak output tokens/s", SECONDS),
        Metric("max_concurrent_requests", "peak concurrent requests", ACTIVE),
    ]
    for short, differs in (("ttft", first), ("tpot", first), ("itl", gaps), ("e2el", "")):
        for statistic in ("mean", "median", "std", "p90", "p99"):
            found.append(
                Metric(
                    f"{statistic}_{short}_ms", f"{statistic} {short.upper()} (ms)", differs or paced
                )
            )
    return [*found, Metric(FROM_DUE, "mean TTFT from due (ms)", QUEUED)]


def rows(wanted: Sequence[Metric], theirs: Sequence[Kept], ours: Sequence[Kept]) -> list[Row]:
    """All metrics of the runs of both."""
    return [Row.of(metric, theirs, ours) for metric in wanted]


def verdict_text(own: Mapping[str, Any]) -> str:
    """The verdict of a result of loadgen, and of each check that decided it what was measured."""
    failed = [
        f"{each['name']}: {each['value']}"
        for each in own["checks"]
        if each["ok"] is False and each["counts"]
    ]
    return own["verdict"] + (f" ({'; '.join(failed)})" if failed else "")


def kept(result: Mapping[str, Any], others_s: float) -> Kept:
    """The numbers of a result, with the mean TTFT from when each request was due."""
    numbers = {key: float(value) for key, value in result.items() if isinstance(value, int | float)}
    if "loadgen" in result:
        numbers[FROM_DUE] = result["loadgen"]["latency_ms"]["ttft_due"]["mean"]
        return Kept(numbers, others_s, verdict_text(result["loadgen"]))
    waits_s = [
        wait_s + ttft_s
        for wait_s, ttft_s in zip(result["queue_times"], result["ttfts"], strict=True)
    ]
    numbers[FROM_DUE] = 1e3 * statistics.fmean(waits_s)
    return Kept(numbers, others_s)

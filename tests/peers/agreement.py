"""Agreement: the figures of two results under the same names, and whether they agree where they mean the same."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.bench.table import figure
from tests.peers.quiet import median

FROM_DUE = "mean_ttft_due_ms"  # in no result: made of what each tells
SHARE, MS = 0.02, 1.0  # figures agree within 2 %, and times also within a millisecond

DURATION = "the clock starts a gap before the first request there, with the first request here"
ROLE = "the role chunk counts as the first token there"
CHUNKS = "every chunk counts there, those with tokens here"
SECONDS = "whole seconds there, any second here"
ACTIVE = "requests that touch a whole second there, in flight at once here"
PACED = "not judged: under a cap a tool's own delays are part of the load"
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

    Attributes:
        metric: Which.
        theirs, ours: Medians; None: not told.
    """

    metric: Metric
    theirs: float | None
    ours: float | None

    @property
    def agrees(self) -> bool:
        """Whether they are as near as two figures of the same meaning must be."""
        if self.theirs is None or self.ours is None:
            return False
        apart = abs(self.ours - self.theirs)
        return apart <= SHARE * abs(self.theirs) or (self.metric.key.endswith("_ms") and apart <= MS)

    @property
    def cells(self) -> tuple[str, ...]:
        """As tables show it."""
        if self.theirs is None or self.ours is None:
            apart = "n/a"
        else:
            share = f", {100 * (self.ours / self.theirs - 1):+.1f} %" if self.theirs else ""
            apart = f"{self.ours - self.theirs:+,.2f}{share}"
        judged = self.metric.differs or ("agree" if self.agrees else "**DISAGREE**")
        return self.metric.name, figure(self.theirs), figure(self.ours), apart, judged


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
            found.append(Metric(f"{statistic}_{short}_ms", f"{statistic} {short.upper()} (ms)", differs or paced))
    return [*found, Metric(FROM_DUE, "mean TTFT from due (ms)", QUEUED)]


def rows(wanted: Sequence[Metric], theirs: Sequence[Kept], ours: Sequence[Kept]) -> list[Row]:
    """The medians of both."""
    return [
        Row(metric, *(median(runs, lambda run, key=metric.key: run.data.get(key)) for runs in (theirs, ours)))  # type: ignore[misc]
        for metric in wanted
    ]


def kept(result: Mapping[str, Any], others_s: float) -> Kept:
    """The numbers of a result, with the mean TTFT from when each request was due."""
    numbers = {key: float(value) for key, value in result.items() if isinstance(value, int | float)}
    if "loadgen" in result:
        numbers[FROM_DUE] = result["loadgen"]["latency_ms"]["ttft_due"]["mean"]
        return Kept(numbers, others_s, result["loadgen"]["verdict"])
    waits_s = [wait_s + ttft_s for wait_s, ttft_s in zip(result["queue_times"], result["ttfts"], strict=True)]
    numbers[FROM_DUE] = 1e3 * statistics.fmean(waits_s)
    return Kept(numbers, others_s)

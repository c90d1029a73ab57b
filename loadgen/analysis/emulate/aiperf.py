"""AIPerf 0.13.0: its table of metrics, of which the average, the 99th percentile and the median are shown.

By its chat endpoint, which says what a response holds, and its `metrics/types`.
"""

from dataclasses import dataclass

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.gaps import gaps
from loadgen.analysis.emulate.latencies import MS, began, first_start, reservations, starts
from loadgen.analysis.emulate.recorded_run import Bools, Run, which
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import (
    CONNECTING,
    EVENT_IS_TOKEN,
    FORGIVING,
    FROM_SENT,
    MEAN_ITL,
    N_MINUS_1,
    Rule,
    Rules,
)
from loadgen.analysis.emulate.tool import Tool
from loadgen.core.event_flags import CONTENT, REASONING, TOKENS, TOOL
from loadgen.util.arrays import Floats, Int64s

REFUSALS = Rule("refusals", "refusals are no content to it, and the name of a tool is; loadgen counts what bears text")
UNTOLD = Rule("untold", "an answer whose usage is not told has no output tokens and no ITL; loadgen counts what came")
CONTENT_SPAN = Rule("content_span", "its duration ends with the last content; loadgen's with the last request")
RULES = (FROM_SENT, CONNECTING, REFUSALS, MEAN_ITL, UNTOLD, N_MINUS_1, EVENT_IS_TOKEN, CONTENT_SPAN, FORGIVING)
CONTENTS = which(lambda says: says & (CONTENT | REASONING | TOOL))
ANSWERS = which(lambda says: says & (CONTENT | TOOL))


@dataclass(frozen=True)
class Records:
    """What AIPerf keeps of the requests that it counts as valid; times are ns, arrays have an entry for each.

    Attributes:
        run: The run.
        on: The rules that hold.
        contents: The selection of events that hold content.
        of: Which requests of the run these are.
        start, first, last: When each began, and when its first and last content came.
        output: Output tokens, -1 where they are not told.
    """

    run: Run
    on: Rules
    contents: bytes
    of: Bools
    start: Int64s
    first: Int64s
    last: Int64s
    output: Int64s

    @property
    def duration_s(self) -> float:
        """From the first start to the last content."""
        run = self.run
        if CONTENT_SPAN not in self.on:
            return run.seconds_since(first_start(run, self.on))
        return float(self.last.max() - began(run, self.on)[self.of].min()) / 1e9 if self.of.any() else 0.0

    @property
    def second(self) -> Distribution:
        """From the first content to the second."""
        chosen = self.run.chosen(self.contents)
        begins = chosen.bounds[:-1][self.of & (chosen.count > 1)]
        return Distribution((chosen.at[begins + 1] - chosen.at[begins]).astype(float))

    @property
    def first_answer(self) -> Distribution:
        """From the start to the first content that is no thought."""
        chosen = self.run.chosen(ANSWERS if REFUSALS in self.on else which(lambda says: says & TOKENS & ~REASONING))
        has = chosen.count[self.of] > 0
        return Distribution((chosen.first[self.of] - self.start)[has].astype(float))

    @property
    def mean_gaps(self) -> Floats:
        """First to last content over output tokens - 1, ns, of the requests that have one."""
        after_first = self.output - 1
        if N_MINUS_1 not in self.on:
            after_first = self.output - self.run.first_tokens[self.of]
        has = (self.output > 1) & (after_first > 0)
        return (self.last - self.first)[has] / after_first[has]

    @property
    def itl(self) -> Distribution:
        """Mean gaps."""
        if MEAN_ITL in self.on:
            return Distribution(self.mean_gaps)
        return gaps(self.run, self.contents, self.contents, self.of, imputed=EVENT_IS_TOKEN not in self.on)


def _records(run: Run, on: Rules) -> Records:
    contents = CONTENTS if REFUSALS in on else which(lambda says: says & TOKENS)
    chosen = run.chosen(contents)
    of = (run.whole if FORGIVING in on else run.ok) & (chosen.count > 0)
    start, first, last = starts(run, on)[of], chosen.first[of], chosen.last[of]
    output = run.completion_tokens if UNTOLD in on else run.tokens
    return Records(run, on, contents, of, start, first, last, output[of])


def _latencies(run: Run, on: Rules) -> list[Row]:
    records = _records(run, on)
    latency, ttft = records.last - records.start, records.first - records.start
    return [
        *_metric("Time to First Token (ms)", "ttft", Distribution(ttft.astype(float)), MS),
        *_metric("Time to Second Token (ms)", None, records.second, MS),
        *_metric("Time to First Output Token (ms)", "ttfo", records.first_answer, MS),
        *_metric("Request Latency (ms)", "e2el", Distribution(latency.astype(float)), MS),
    ]


def _gaps(run: Run, on: Rules) -> list[Row]:
    return _metric("Inter Token Latency (ms)", "itl", _records(run, on).itl, MS)


def _totals(run: Run, on: Rules) -> list[Row]:
    records = _records(run, on)
    duration_s, mean_gaps = records.duration_s, records.mean_gaps
    counted = records.output[records.output >= 0].astype(float)
    total = float(counted.sum()) / duration_s if len(counted) and duration_s else None
    per_user = Distribution(1e9 / mean_gaps[mean_gaps > 0])
    prompts = run.prompt_tokens[records.of]
    inputs = Distribution(prompts[prompts >= 0].astype(float))
    completed = float(records.of.sum())
    return [
        *_metric("Output Token Throughput Per User (tokens/sec/user)", None, per_user, 1),
        *_metric("Output Sequence Length (tokens)", None, Distribution(counted), 1),
        *_metric("Input Sequence Length (tokens)", None, inputs, 1),
        Row("Output Token Throughput (tokens/sec)", total, "output_throughput"),
        Row("Request Throughput (requests/sec)", completed / duration_s if duration_s else None, "request_throughput"),
        Row("Request Count (requests)", completed, "completed", notes=reservations(run, records.of)),
    ]


def _metric(title: str, metric: str | None, values: Distribution, unit: float) -> list[Row]:
    """Three of its columns; a metric that no request has, it does not show."""
    if not len(values.values):
        return []
    found = {"avg": ("mean", values.mean), "p99": ("p99", values.percentile(99)), "p50": ("p50", values.percentile(50))}

    def row(column: str, statistic: str, value: float | None) -> Row:
        known = None if value is None else value / unit
        return Row(f"{title} {column}", known, metric and f"{metric} {statistic}")

    return [row(column, *told) for column, told in found.items()]


AIPERF = Tool(
    "AIPerf 0.13.0",
    RULES,
    (_latencies, _gaps, _totals),
    ("with --use-server-token-count: else it tokenizes texts, which are not in the records",),
)

"""AIPerf 0.13.0: the average, the 99th percentile and the median in its table of metrics.

It follows AIPerf's chat endpoint, which parses responses, and its `metrics/types`.
"""

from dataclasses import dataclass

from loadgen.core.event_flags import CONTENT, REASONING, TEXTS, TOKENS, TOOL
from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.event_times import gaps
from loadgen.lab.tools.emulate.recorded_run import Bools, event_selection
from loadgen.util.arrays import Floats, Int64s

REFUSALS = tool.rule("refusals")
NO_USAGE = tool.rule("untold")
CONTENT_SPAN = tool.rule("content_span")
RULES = (
    tool.FROM_SENT,
    tool.CONNECTING,
    REFUSALS,
    tool.MEAN_ITL,
    NO_USAGE,
    tool.N_MINUS_1,
    tool.EVENT_IS_TOKEN,
    CONTENT_SPAN,
    tool.FORGIVING,
)
CONTENTS = event_selection(lambda flags: flags & (CONTENT | REASONING | TOOL))
ANSWERS = event_selection(lambda flags: flags & (CONTENT | TOOL))
NOT_REASONING = event_selection(lambda flags: flags & TEXTS & ~REASONING)


@dataclass(frozen=True)
class Records(tool.View):
    """The data that AIPerf keeps of valid requests; times are ns, arrays have an entry for each of
    them.

    Attributes:
        run: The run.
        active: The active rules.
        contents: The selection of events with content.
        included: Which requests of the run these are.
        start, first, last: When each began, and when its first and last content arrived.
        output: Output tokens, -1 if unknown.
    """

    contents: bytes
    included: Bools
    start: Int64s
    first: Int64s
    last: Int64s
    output: Int64s

    @property
    def duration_s(self) -> float:
        """Time from the first start to the last content, s."""
        if CONTENT_SPAN not in self.active:
            return self.run.seconds_since(self.first_start)
        return (
            float(self.last.max() - self.began[self.included].min()) / 1e9
            if self.included.any()
            else 0.0
        )

    @property
    def second(self) -> Distribution:
        """Time from the first content to the second, ns."""
        selected = self.run.select(self.contents)
        begins = selected.bounds[:-1][self.included & (selected.count > 1)]
        return Distribution((selected.at[begins + 1] - selected.at[begins]).astype(float))

    @property
    def first_answer(self) -> Distribution:
        """Time from the start to the first content that is not reasoning, ns."""
        selected = self.run.select(ANSWERS if REFUSALS in self.active else NOT_REASONING)
        has = selected.count[self.included] > 0
        return Distribution((selected.first[self.included] - self.start)[has].astype(float))

    @property
    def mean_gaps(self) -> Floats:
        """Time from first to last content over output tokens - 1, ns, of the requests that have
        one.
        """
        after_first = self.output - 1
        if tool.N_MINUS_1 not in self.active:
            after_first = self.output - self.run.first_tokens[self.included]
        has = (self.output > 1) & (after_first > 0)
        return (self.last - self.first)[has] / after_first[has]

    @property
    def itl(self) -> Distribution:
        """Mean gap of each request, ns."""
        if tool.MEAN_ITL in self.active:
            return Distribution(self.mean_gaps)
        return gaps(
            self.run,
            self.contents,
            self.contents,
            self.included,
            imputed=tool.EVENT_IS_TOKEN not in self.active,
        )


def records_of(view: tool.View) -> Records:
    """Return what AIPerf keeps of a run, as it sees it."""
    run = view.run
    active = view.active
    contents = CONTENTS if REFUSALS in active else event_selection(lambda flags: flags & TOKENS)
    selected = run.select(contents)
    included = (run.complete if tool.FORGIVING in active else run.ok) & (selected.count > 0)
    start = view.starts[included]
    first = selected.first[included]
    last = selected.last[included]
    output = run.completion_tokens if NO_USAGE in active else run.tokens
    return Records(run, active, contents, included, start, first, last, output[included])


def _latencies(view: tool.View) -> list[tool.Row]:
    records = records_of(view)
    latency = records.last - records.start
    ttft = records.first - records.start
    return [
        *_metric("Time to First Token (ms)", "ttft", Distribution(ttft.astype(float)), tool.MS),
        *_metric("Time to Second Token (ms)", None, records.second, tool.MS),
        *_metric("Time to First Output Token (ms)", "ttfo", records.first_answer, tool.MS),
        *_metric("Request Latency (ms)", "e2el", Distribution(latency.astype(float)), tool.MS),
    ]


def _totals(view: tool.View) -> list[tool.Row]:
    records = records_of(view)
    duration_s = records.duration_s
    mean_gaps = records.mean_gaps
    counted = records.output[records.output >= 0].astype(float)
    total = float(counted.sum()) / duration_s if len(counted) and duration_s else None
    per_user = Distribution(1e9 / mean_gaps[mean_gaps > 0])
    prompts = view.run.prompt_tokens[records.included]
    inputs = Distribution(prompts[prompts >= 0].astype(float))
    completed = float(records.included.sum())
    return [
        *_metric("Output Token Throughput Per User (tokens/sec/user)", None, per_user, 1),
        *_metric("Output Sequence Length (tokens)", None, Distribution(counted), 1),
        *_metric("Input Sequence Length (tokens)", None, inputs, 1),
        tool.Row("Output Token Throughput (tokens/sec)", total, "output_throughput"),
        tool.Row(
            "Request Throughput (requests/sec)",
            completed / duration_s if duration_s else None,
            "request_throughput",
        ),
        tool.Row(
            "Request Count (requests)",
            completed,
            "completed",
            notes=view.notes_on_counts(records.included),
        ),
    ]


def _metric(title: str, metric: str | None, values: Distribution, unit: float) -> list[tool.Row]:
    """Return the rows of three columns of its table; none for a metric that no request has."""
    if not len(values.values):
        return []
    statistics = (
        ("avg", "mean", values.mean),
        ("p99", "p99", values.percentile(99)),
        ("p50", "p50", values.percentile(50)),
    )
    return [
        tool.Row(f"{title} {column}", (value or 0.0) / unit, metric and f"{metric} {statistic}")
        for column, statistic, value in statistics
    ]


AIPERF = tool.Tool(
    "AIPerf 0.13.0",
    RULES,
    (
        _latencies,
        lambda view: _metric("Inter Token Latency (ms)", "itl", records_of(view).itl, tool.MS),
        _totals,
    ),
    ("with --use-server-token-count: otherwise it tokenizes texts, which are not in the records",),
)

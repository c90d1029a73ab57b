"""guidellm 0.5.1 as benchmark-runner called it: the numbers of GPUStack's published pages.

benchmark-runner's chat handler decides which chunks are tokens; `GenerativeRequestStats`,
`GenerativeMetrics` and `DistributionSummary` of guidellm compute the numbers. Rates are events per
second, from the gaps around each event. The rows are those of the pages.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from loadgen.core.event_flags import CHOICE, CONTENT, EMPTY, OLD_REASONING, TEXTS, TOKENS
from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.event_times import busiest_sliding_second, gaps, tokens_per_event
from loadgen.lab.tools.emulate.recorded_run import Bools, event_selection
from loadgen.metrics.throughput import peak_rate
from loadgen.util.arrays import Floats, Int64s

MERGE_S = 1e-4  # events closer than this are merged
MIN_DURATION_S = 1e-6  # minimum duration of the last event
EMPTY_IS_TOKEN = tool.rule("empty_is_token")
IGNORES = tool.rule("guidellm.ignores")
WITH_TTFT = tool.rule("with_ttft")
WEIGHTED = tool.rule("weighted")
STEPS = tool.rule("steps")
EVENLY = tool.rule("evenly")
RECIPROCAL = tool.rule("reciprocal")
TOKEN_SPAN = tool.rule("token_span")
UNTIL_CLOSED = tool.rule("until_closed")
MERGED = tool.rule("merged")
RULES = (
    *(tool.FROM_SENT, tool.CONNECTING, IGNORES, EMPTY_IS_TOKEN, WITH_TTFT, tool.MEAN_ITL),
    *(tool.EVENT_IS_TOKEN, WEIGHTED, STEPS, EVENLY, RECIPROCAL, TOKEN_SPAN, UNTIL_CLOSED, MERGED),
    *(tool.FORGIVING, tool.ZERO),
)
S = 1e9


@dataclass(frozen=True)
class Requests(tool.View):
    """The data that guidellm keeps of successful requests; times are ns, arrays have an entry for
    each.

    Attributes:
        run: The run.
        active: The active rules.
        tokens: The selection of events that it takes for tokens.
        included: Which requests of the run these are.
        start, end: When each began and ended.
        seen: Number of events of each that are tokens.
        first, last: When the first and the last token arrived; the end of a request without one.
        output, input: Number of tokens that it counts.
    """

    tokens: bytes
    included: Bools
    start: Int64s
    end: Int64s
    seen: Int64s
    first: Int64s
    last: Int64s
    output: Int64s
    input: Int64s

    @property
    def duration_s(self) -> float:
        """Time from the first start to the end of the last response, s."""
        return self.run.seconds_since(self.first_start)

    def distribution(self, values: Floats, weights: Int64s | None = None) -> Distribution:
        """Return the distribution of values, NaN where nothing was measured."""
        kept = ~np.isnan(values)
        if tool.ZERO in self.active:
            values, kept = np.nan_to_num(values), np.full(len(values), True)
        weights = weights if WEIGHTED in self.active else None
        shares = None if weights is None else weights[kept].astype(np.float64)
        return Distribution(values[kept], shares, STEPS in self.active)

    @property
    def latency(self) -> Distribution:
        """Time from start to end, ns."""
        end = (
            self.end
            if UNTIL_CLOSED in self.active
            else np.where(self.seen > 0, self.last, self.end)
        )
        return self.distribution((end - self.start).astype(float))

    @property
    def ttft(self) -> Distribution:
        """Time from start to first token, ns."""
        return self.distribution(np.where(self.seen > 0, self.first - self.start, np.nan))

    @property
    def tpot(self) -> Distribution:
        """Time per output token, ns; each request is weighted by its tokens."""
        if WITH_TTFT in self.active:
            values = np.where(
                self.output > 0, (self.last - self.start) / np.maximum(self.output, 1), np.nan
            )
        else:
            after_first = np.where(
                self.seen > 1, self.output - self.run.first_tokens[self.included], 0
            )
            values = np.where(
                after_first > 0, (self.last - self.first) / np.maximum(after_first, 1), np.nan
            )
        return self.distribution(values, self.output)

    @property
    def itl(self) -> Distribution:
        """Mean gap of each request, ns, weighted by its gaps."""
        if tool.MEAN_ITL not in self.active:
            seen = gaps(
                self.run,
                self.tokens,
                self.tokens,
                self.included,
                imputed=tool.EVENT_IS_TOKEN not in self.active,
            )
            return Distribution(seen.values, seen.weights, STEPS in self.active)
        after_first = np.maximum(self.output, 1) - 1
        measured = (self.seen > 0) & (after_first > 0)
        values = np.where(measured, (self.last - self.first) / np.maximum(after_first, 1), np.nan)
        return self.distribution(values, after_first)

    @property
    def timings(self) -> tuple[Floats, Floats]:
        """When tokens arrived, s after the start of the run's clock, and how many."""
        if EVENLY not in self.active:
            selected = self.run.select(self.tokens)
            at = selected.at[np.repeat(self.included, selected.count)]
            return (at - self.run.start_ns) / S, tokens_per_event(
                self.run, selected, self.included
            ).astype(float)
        several = self.seen > 1
        first = (self.first - self.run.start_ns) / S
        last = (self.last - self.run.start_ns) / S
        steps = np.where(several & (self.output > 1), self.seen - 1, 0)
        number = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps) + 1
        step = (last - first) / np.maximum(steps, 1)
        later = np.repeat(first, steps) + number * np.repeat(step, steps)
        per_step = np.repeat((self.output - 1) / np.maximum(steps, 1), steps)
        at = np.concatenate((np.where(several, first, last), later))
        first_brings = np.where(several, self.output > 0, self.output).astype(np.float64)
        return at.astype(np.float64), np.concatenate((first_brings, per_step))

    def throughput(self, prompts: bool) -> float | None:
        """Return tokens per second, with or without those of the prompts; None if the duration
        is 0.
        """
        tokens = self.output.sum() + (self.input.sum() if prompts else 0)
        if TOKEN_SPAN not in self.active:
            return float(tokens) / self.duration_s if self.duration_s else None
        return self._rate(prompts)[0]

    def _rate(self, prompts: bool) -> tuple[float, float]:
        tokens = (self.output.tobytes(), self.input.tobytes() if prompts else b"")
        key = ("rate", self.tokens, self.included.tobytes(), EVENLY in self.active, *tokens)
        return self.run.cached(key, lambda: self._fresh_rate(prompts))

    def _fresh_rate(self, prompts: bool) -> tuple[float, float]:
        at, counts = self.timings
        if prompts:
            at = np.concatenate(
                (at, (np.where(self.seen > 0, self.first, self.end) - self.run.start_ns) / S)
            )
            counts = np.concatenate((counts, self.input))
        distribution = rates(at, counts)
        return _or_zero(distribution, "mean"), _or_zero(distribution, "max")

    @property
    def peak_tokens(self) -> float:
        """Maximum number of output tokens in a second."""
        if RECIPROCAL in self.active:
            return self._rate(prompts=False)[1]
        at, counts = self.timings
        ns = np.round(at * S).astype(np.int64) + self.run.start_ns
        return peak_rate(busiest_sliding_second(ns, self.run.start_ns, counts), self.duration_s)

    @property
    def peak_requests(self) -> float:
        """Maximum number of concurrent requests."""
        if MERGED not in self.active:
            return self.run.peak_in_flight
        started = (self.start - self.first_start) / S
        ended = (self.end - self.first_start) / S
        return _or_zero(concurrency(started, ended, 0.0, self.duration_s), "max")


def rates(times: Floats, weights: Floats) -> Distribution | None:
    """Return events per second: the weight of each event over half the time to its neighbours,
    weighted by that time.

    Args:
        times: The times of the events, s, shape (n,), in any order.
        weights: The weights of the events, shape (n,).

    Returns:
        None if there are fewer than two distinct times.
    """
    at, counts = merged(times, weights)
    if len(at) < 2:
        return None
    middles = (at[1:] + at[:-1]) / 2
    durations = np.concatenate(
        ([middles[0] - at[0]], np.diff(middles), [max(at[-1] - middles[-1], MIN_DURATION_S)])
    )
    return Distribution(counts / durations, durations, steps=True)


def concurrency(starts: Floats, ends: Floats, begin: float, end: float) -> Distribution | None:
    """Return the number of requests in flight between two times, weighted by duration; None
    without requests.
    """
    changes = np.concatenate((np.ones(len(starts)), np.full(len(ends), -1.0)))
    at, steps = merged(np.concatenate((starts, ends)), changes)
    if not len(at):
        return None
    inside = (at >= begin) & (at <= end)
    times = np.concatenate(([begin], at[inside], [end]))
    levels = np.cumsum(np.concatenate(([steps[at < begin].sum()], steps[inside]))).clip(0)
    durations = np.diff(times).clip(0)
    return Distribution(levels, durations, steps=True) if durations.any() else None


def merged(times: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Sort events by time; merge those within MERGE_S of the first of them, with the sum of
    their weights.
    """
    order = np.argsort(times)
    times = times[order]
    weights = weights[order]
    beyond: Int64s = np.searchsorted(times, times + MERGE_S, side="right")
    first = array("q")
    at = 0
    while at < len(times):
        first.append(at)
        at = int(beyond[at])
    starts = np.frombuffer(first, dtype=np.int64)
    return times[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def _or_zero(distribution: Distribution | None, statistic: str) -> float:
    return 0.0 if distribution is None else float(getattr(distribution, statistic) or 0.0)


def _requests(view: tool.View) -> Requests:
    run = view.run
    active = view.active
    tokens = event_selection(lambda flags: _is_token(run.chat, active, flags))
    included = run.complete if tool.FORGIVING in active else run.ok
    selected = run.select(tokens)
    seen = selected.count[included]
    end = run.closed[included]
    usage = run.completion_tokens[included]
    counted = seen if tool.EVENT_IS_TOKEN in active else run.tokens[included]
    return Requests(
        run,
        active,
        tokens,
        included,
        start=view.starts[included],
        end=end,
        seen=seen,
        first=np.where(seen > 0, selected.first[included], end),
        last=np.where(seen > 0, selected.last[included], end),
        output=np.where(usage >= 0, usage, counted),
        input=(np.maximum(run.prompt_tokens, 0) if tool.ZERO in active else run.prompts)[included],
    )


def _is_token(chat: bool, active: tool.Rules, flags: Int64s) -> Bools:
    """Tell which events are tokens: content or `reasoning_content` that is not null; in
    completions not empty.
    """
    tokens: Bools = flags & TOKENS != 0
    texts: Bools = flags & TEXTS != 0
    has_choice: Bools = flags & CHOICE != 0
    counted = tokens
    if IGNORES in active:
        counted = texts & (flags & (CONTENT | EMPTY | (OLD_REASONING if chat else 0)) != 0)
    if chat and EMPTY_IS_TOKEN in active:
        counted = counted | (~texts & (flags & (EMPTY | OLD_REASONING) != 0))
    return counted & has_choice


def _totals(view: tool.View) -> list[tool.Row]:
    requests = _requests(view)
    completed = float(requests.included.sum())
    duration_s = requests.duration_s
    cap = view.run.settings.max_concurrency
    return [
        tool.vllm_row("completed", completed, view.notes_on_counts(requests.included)),
        *([] if cap is None else [tool.vllm_row("max_concurrency", cap)]),
        tool.vllm_row("duration", duration_s),
        tool.vllm_row("total_input_tokens", float(requests.input.sum())),
        tool.vllm_row("total_output_tokens", float(requests.output.sum())),
        tool.vllm_row("request_throughput", completed / duration_s if duration_s else None),
    ]


def _number(key: str, view: tool.View) -> list[tool.Row]:
    label = TOTAL if key == "total_token_throughput" else ""
    return [tool.vllm_row(key, NUMBERS[key](_requests(view)), label=label)]


def _latency(title: str, metric: str, unit_ms: float, view: tool.View) -> list[tool.Row]:
    values: Distribution = getattr(_requests(view), "latency" if metric == "e2el" else metric)
    return view.percentile_rows(title, metric, values, (99,), unit_ms)


TOTAL = "Total Token throughput (tok/s):"
NUMBERS: dict[str, Callable[[Requests], float | None]] = {
    "output_throughput": lambda requests: requests.throughput(False),
    "max_output_tokens_per_s": lambda requests: requests.peak_tokens,
    "max_concurrent_requests": lambda requests: requests.peak_requests,
    "total_token_throughput": lambda requests: requests.throughput(True),
}
LATENCIES = (
    partial(_latency, "Latency(s)", "e2el", 1000.0),
    *(
        partial(_latency, f"{metric.upper()} (ms)", metric, 1.0)
        for metric in ("ttft", "tpot", "itl")
    ),
)
BENCHMARK_RUNNER = tool.Tool(
    "benchmark-runner on guidellm 0.5.1",
    RULES,
    (_totals, *(partial(_number, key) for key in NUMBERS), *LATENCIES),
    ("with its chat handler, which reads `content` and `reasoning_content`",),
)

"""What the simulator counts, in Prometheus' text format under vLLM's names."""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from loadgen.engines.sim.scheduler import Scheduler
from loadgen.engines.sim.settings import SimSettings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
GAPS = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
TOKENS = tuple(float(digit * 10**power) for power in range(6) for digit in (1, 2, 5))


class Histogram:
    """Counts of values by upper bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, as often as it occurred."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def samples(self, name: str, labels: str) -> Iterator[str]:
        """Yield the lines of the exposition, without the type."""
        totals = list(accumulate(self._counts))
        for bound, total in zip((*map(str, self._bounds), "+Inf"), totals, strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum}"
        yield f"{name}_count{{{labels}}} {totals[-1]}"


class Metrics:
    """Everything that was counted since the start.

    Attributes:
        prompt_tokens: Of requests that got their first token.
        generation_tokens: Tokens brought by engine steps.
        finished: Requests by finish reason.
        steps: Engine steps completed.
        step_overrun_s: By how much steps ended late, because writing out the tokens of the one before outlasted them.
        streams_cut: Connections closed because the client read too slowly.
    """

    def __init__(self) -> None:
        self.prompt_tokens = self.generation_tokens = self.steps = self.streams_cut = 0
        self.step_overrun_s = 0.0
        self.finished = {"stop": 0, "length": 0, "abort": 0}
        self.ttft_s = Histogram(SECONDS)
        self.itl_s = Histogram(GAPS)
        self.e2el_s = Histogram(SECONDS)
        self.request_prompt_tokens = Histogram(TOKENS)
        self.request_generation_tokens = Histogram(TOKENS)
        self.iteration_tokens = Histogram(TOKENS)

    def text(self, settings: SimSettings, schedulers: Sequence[Scheduler[Any]]) -> str:
        """Return the exposition; gauges are read from the schedulers, and are those of all together."""
        labels = f'engine="0",model_name="{settings.served_model_name}"'
        lines: list[str] = []

        def plain(kind: str, name: str, value: float) -> None:
            lines.extend((f"# TYPE {name} {kind}", f"{name}{{{labels}}} {value}"))

        used = sum(each.kv_tokens for each in schedulers) / len(schedulers)
        plain("gauge", "vllm:num_requests_running", sum(each.running for each in schedulers))
        plain("gauge", "vllm:num_requests_waiting", sum(each.waiting for each in schedulers))
        plain("gauge", "vllm:kv_cache_usage_perc", used / settings.num_kv_tokens)
        plain("counter", "vllm:num_preemptions_total", sum(each.preemptions for each in schedulers))
        plain("counter", "vllm:prefix_cache_queries_total", sum(each.cache.queried for each in schedulers))
        plain("counter", "vllm:prefix_cache_hits_total", sum(each.cache.hit for each in schedulers))
        plain("counter", "vllm:prompt_tokens_total", self.prompt_tokens)
        plain("counter", "vllm:generation_tokens_total", self.generation_tokens)
        lines.append("# TYPE vllm:request_success_total counter")
        for reason, count in self.finished.items():
            lines.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}')
        for name, histogram in (
            ("vllm:time_to_first_token_seconds", self.ttft_s),
            ("vllm:inter_token_latency_seconds", self.itl_s),
            ("vllm:e2e_request_latency_seconds", self.e2el_s),
            ("vllm:request_prompt_tokens", self.request_prompt_tokens),
            ("vllm:request_generation_tokens", self.request_generation_tokens),
            ("vllm:iteration_tokens_total", self.iteration_tokens),
        ):
            lines.append(f"# TYPE {name} histogram")
            lines.extend(histogram.samples(name, labels))
        plain("counter", "sim:steps_total", self.steps)
        plain("counter", "sim:step_overrun_seconds_total", self.step_overrun_s)
        plain("counter", "sim:streams_cut_total", self.streams_cut)
        lines.extend(("# TYPE process_cpu_seconds_total counter", f"process_cpu_seconds_total {time.process_time()}"))
        return "\n".join(lines) + "\n"

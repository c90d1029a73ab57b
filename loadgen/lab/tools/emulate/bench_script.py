"""Answers: the arithmetic that `vllm bench serve` and SGLang's fork of it share."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loadgen.lab.tools.emulate import tool
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.event_times import (
    busiest_sliding_second,
    busiest_whole_second,
    gaps,
    max_sharing_a_second,
    spread_tokens,
    tokens_per_event,
)
from loadgen.lab.tools.emulate.recorded_run import Bools
from loadgen.metrics.throughput import peak_rate
from loadgen.util.arrays import Floats, Int64s


class TokenSum(NamedTuple):
    """The tokens of all successful requests together.

    Attributes:
        value: The sum; None if it cannot be known.
        notes: Why it cannot be known; empty if it can.
    """

    value: float | None
    notes: tuple[tool.Rule, ...]


@dataclass(frozen=True)
class Answers(tool.View):
    """The data that such a script keeps of the requests; times are ns, arrays have an entry per
    request.

    Attributes:
        run: The run.
        active: The active rules.
        tokens: The selection of events that it takes for tokens.
        marks: The selection of events that its gaps lie between.
        success: Which requests it counts as successful, if `FORGIVING` is active.
        end: When each request ended; its start if it had no event.
        output: Output tokens of each, -1 if unknown.
        input: Input tokens of each, -1 if unknown.
        begin: When the duration begins.
        divides: Whether it divides the gap before an event by the tokens of the event, as loadgen
            does.
    """

    tokens: bytes
    marks: bytes
    success: Bools
    end: Int64s
    output: Int64s
    input: Int64s
    begin: int
    divides: bool = False

    @property
    def completed(self) -> Bools:
        """Which requests count as successful."""
        return self.success if tool.FORGIVING in self.active else self.success & self.run.ok

    @property
    def failed(self) -> int:
        """Number of other requests, without those whose end is unknown."""
        return int((~self.completed & ~self.run.abandoned).sum())

    @property
    def duration_s(self) -> float:
        """Time from `begin` to the end of the last response, s."""
        return self.run.seconds_since(self.begin)

    def token_sum(self, tokens: Int64s, unknown: tool.Rule) -> TokenSum:
        """Sum up the tokens of successful requests.

        Args:
            tokens: `output` or `input`.
            unknown: The note if a number is unknown.
        """
        counted = tokens[self.completed]
        if (counted < 0).any():
            return TokenSum(None, (unknown,))
        return TokenSum(float(counted.sum()), ())

    def per_second(self, *totals: float | None) -> float | None:
        """Return the sum of totals over the duration; None if one is unknown or the duration is
        0.
        """
        addends = [total for total in totals if total is not None]
        return (
            sum(addends) / self.duration_s
            if len(addends) == len(totals) and self.duration_s
            else None
        )

    @property
    def first(self) -> Int64s:
        """When the first token of each request arrived; its start without a token, so that its
        TTFT is 0.
        """
        selected = self.run.select(self.tokens)
        return np.where(selected.count > 0, selected.first, self.starts)

    @property
    def ttft(self) -> Distribution:
        """Start to first token, ns."""
        return Distribution((self.first - self.starts)[self.completed].astype(np.float64))

    @property
    def e2el(self) -> Distribution:
        """Start to end, ns."""
        return Distribution((self.end - self.starts)[self.completed].astype(np.float64))

    @property
    def tpot_ns(self) -> Floats:
        """Time per output token of each request, NaN if it has none."""
        after_first = self.output - 1
        if tool.N_MINUS_1 not in self.active:
            after_first = np.where(
                self.run.select(self.tokens).count > 1, self.output - self.run.first_tokens, 0
            )
        return np.where(
            after_first > 0, (self.end - self.first) / np.maximum(after_first, 1), np.nan
        )

    @property
    def tpot(self) -> Distribution:
        """Time per output token, ns, of the requests that have one."""
        values = self.tpot_ns[self.completed]
        return Distribution(values[~np.isnan(values)])

    @property
    def itl(self) -> Distribution:
        """Gaps between events, ns."""
        imputed = self.divides or tool.EVENT_IS_TOKEN not in self.active
        return gaps(self.run, self.tokens, self.marks, self.completed, imputed=imputed)

    @property
    def peak_tokens(self) -> float:
        """Maximum number of tokens in a second; loadgen divides by a run that is shorter."""
        completed = self.completed
        selected = self.run.select(self.tokens)
        if not completed.any():
            return 0.0
        counts_one = (tool.SPREAD if self.divides else tool.EVENT_IS_TOKEN) in self.active
        if counts_one and self.divides:
            at = spread_tokens(self.run, self.tokens, completed)
        else:
            at = selected.at[np.repeat(completed, selected.count)]
        if (
            tool.ZERO in self.active and counts_one
        ):  # without events the first token is at the start
            at = np.append(at, self.starts[completed & (selected.count == 0)])
        weights = None if counts_one else tokens_per_event(self.run, selected, completed)
        if tool.WHOLE_SECONDS in self.active:
            return busiest_whole_second(at, int(self.starts[completed].min()), weights)
        return peak_rate(busiest_sliding_second(at, self.run.start_ns, weights), self.duration_s)

    @property
    def peak_requests(self) -> float:
        """Maximum number of concurrent requests."""
        if tool.TOUCHED_SECONDS in self.active:
            return float(
                max_sharing_a_second(self.starts[self.completed], self.end[self.completed])
            )
        return self.run.peak_in_flight

"""What `vllm bench serve` and SGLang's fork of it have in common: how answers become totals, latencies and peaks."""

from dataclasses import dataclass

import numpy as np

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.gaps import gaps
from loadgen.analysis.emulate.latencies import reservations, starts
from loadgen.analysis.emulate.recorded_run import Bools, Run
from loadgen.analysis.emulate.rule import (
    EVENT_IS_TOKEN,
    FORGIVING,
    N_MINUS_1,
    RETOKENIZED,
    TOUCHED_SECONDS,
    UNPLANNED,
    WHOLE_SECONDS,
    ZERO,
    Rule,
    Rules,
)
from loadgen.analysis.emulate.windows import busiest_second, most_touching, sliding_second, spread
from loadgen.util.arrays import Floats, Int64s


@dataclass(frozen=True)
class Answers:
    """What such a script keeps of every request; times are ns, arrays have an entry per request.

    Attributes:
        run: The run.
        on: The rules that hold.
        tokens: The selection of events that it takes for tokens.
        marks: The selection of events between which its gaps lie.
        success: Which requests it counts as successful, whatever `FORGIVING` says.
        end: When each ended; its start where it brought nothing.
        output: Output tokens of each, -1 where they cannot be known.
        input: Input tokens of each, -1 likewise.
        begin: When the duration begins.
    """

    run: Run
    on: Rules
    tokens: bytes
    marks: bytes
    success: Bools
    end: Int64s
    output: Int64s
    input: Int64s
    begin: int

    @property
    def completed(self) -> Bools:
        """Which requests count as successful."""
        return self.success if FORGIVING in self.on else self.success & self.run.ok

    @property
    def failed(self) -> int:
        """How many do not, of those whose end is known."""
        return int((~self.completed & ~self.run.unknown).sum())

    @property
    def counting(self) -> tuple[Rule, ...]:
        """What to know of every count of requests."""
        return reservations(self.run, self.completed)

    @property
    def uncounted(self) -> tuple[Rule, ...]:
        """Why sums of output tokens cannot be known, if they cannot."""
        return (RETOKENIZED,) if (self.output[self.completed] < 0).any() else ()

    @property
    def unplanned(self) -> tuple[Rule, ...]:
        """Why sums of input tokens cannot be known, if they cannot."""
        return (UNPLANNED,) if (self.input[self.completed] < 0).any() else ()

    @property
    def start(self) -> Int64s:
        """When each request began."""
        return starts(self.run, self.on)

    @property
    def duration_s(self) -> float:
        """From `begin` to the end of the last response."""
        return self.run.seconds_since(self.begin)

    @property
    def total_output(self) -> float | None:
        """Output tokens."""
        return None if self.uncounted else float(self.output[self.completed].sum())

    @property
    def total_input(self) -> float | None:
        """Input tokens."""
        return None if self.unplanned else float(self.input[self.completed].sum())

    def per_second(self, *totals: float | None) -> float | None:
        """A sum over the duration."""
        known = [total for total in totals if total is not None]
        return sum(known) / self.duration_s if len(known) == len(totals) and self.duration_s else None

    @property
    def first(self) -> Int64s:
        """The first token of each request; its start where there is none, so that its TTFT is 0."""
        chosen = self.run.chosen(self.tokens)
        return np.where(chosen.count > 0, chosen.first, self.start)

    @property
    def ttft(self) -> Distribution:
        """Start to first token, ns."""
        return Distribution((self.first - self.start)[self.completed].astype(np.float64))

    @property
    def e2el(self) -> Distribution:
        """Start to end, ns."""
        return Distribution((self.end - self.start)[self.completed].astype(np.float64))

    @property
    def tpot_ns(self) -> Floats:
        """Time per output token of each request, NaN where it has none."""
        after_first = self.output - 1
        if N_MINUS_1 not in self.on:
            after_first = np.where(self.run.chosen(self.tokens).count > 1, self.output - self.run.first_tokens, 0)
        return np.where(after_first > 0, (self.end - self.first) / np.maximum(after_first, 1), np.nan)

    @property
    def tpot(self) -> Distribution:
        """Time per output token, ns, of those that have one."""
        values = self.tpot_ns[self.completed]
        return Distribution(values[~np.isnan(values)])

    @property
    def itl(self) -> Distribution:
        """Gaps between events, ns."""
        return gaps(self.run, self.tokens, self.marks, self.completed, imputed=EVENT_IS_TOKEN not in self.on)

    @property
    def peak_tokens(self) -> float:
        """The most tokens in a second."""
        completed, chosen = self.completed, self.run.chosen(self.tokens)
        if not completed.any():
            return 0.0
        at = chosen.at[np.repeat(completed, chosen.count)]
        if ZERO in self.on and EVENT_IS_TOKEN in self.on:  # one that brought nothing has its first token when it starts
            at = np.append(at, self.start[completed & (chosen.count == 0)])
        weights = None if EVENT_IS_TOKEN in self.on else spread(self.run, chosen, completed)
        if WHOLE_SECONDS in self.on:
            return busiest_second(at, int(self.start[completed].min()), weights)
        return float(sliding_second(at, self.run.start_ns, np.ones(len(at), np.int64) if weights is None else weights))

    @property
    def peak_requests(self) -> float:
        """The most requests at once."""
        if TOUCHED_SECONDS in self.on:
            return float(most_touching(self.start[self.completed], self.end[self.completed]))
        return self.run.most_in_flight

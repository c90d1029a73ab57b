"""Gaps: where the time between the tokens of a stream went, and whose fault the long ones are."""

from enum import IntEnum

import numpy as np
from msgspec import Struct

from loadgen.explanation.request_columns import RequestColumns
from loadgen.explanation.step_costs import StepCosts
from loadgen.explanation.steps import Arrivals, Steps
from loadgen.util.arrays import Bools, Floats, Int64s

LONG, LONG_MS = 3.5, 40.0  # a gap is long from so many usual gaps on, and so much above one
READ_LATE = 0.5  # share of a gap by which an event may have come earlier
CAUGHT_UP, CAUGHT_UP_TOKENS = 0.5, 3.0  # share of the tokens that the gap lacked; least number
OTHERS_WENT_ON = 0.3  # share of the tokens that other streams would usually get
PROMPT_SHARE = 0.4  # of what a gap is too long, from which prompts of others are its cause
NEAR_MS, NEAR = 2.5, 0.05  # of the end of a gap, and as a share of it
SAME_END_MS = 5.0


class Stall(IntEnum):
    """What a long gap of a stream was.

    CLIENT: The event may have come long before it was read. PATH: All streams stood still, then
    caught up. STREAM: One stream stood still, then caught up. PROMPT: Prompts of others were
    computed. STARVED: One stream stood still, others went on, and it did not catch up. ENGINE: All
    stood still, without a prompt, and did not catch up.
    """

    NONE = 0
    CLIENT = 1
    PATH = 2
    STREAM = 3
    PROMPT = 4
    STARVED = 5
    ENGINE = 6


class Gaps(Struct, frozen=True):
    """The gaps between the arrivals of each stream; shape (g,), lengths ms.

    Attributes:
        stream: The place of its request in the columns.
        begin_ms, end_ms: Its ends, on the axis of the arrivals.
        kind: The `Stall` that it is; NONE: it is not long.
        own_ms: What its tokens would take at the speed of the model.
        batch_ms, prompt_ms, stall_ms: What other streams, prompts of others, and a stall add.
        last: Whether the stream ends with it.
    """

    stream: Int64s
    begin_ms: Floats
    end_ms: Floats
    kind: Int64s
    own_ms: Floats
    batch_ms: Floats
    prompt_ms: Floats
    stall_ms: Floats

    @property
    def length_ms(self) -> Floats:
        """How long each is."""
        return self.end_ms - self.begin_ms

    @property
    def other_ms(self) -> Floats:
        """What is in no other part, which may be negative."""
        known = self.own_ms + self.batch_ms + self.prompt_ms + self.stall_ms
        return self.length_ms - known

    @classmethod
    def of(
        cls,
        requests: RequestColumns,
        arrivals: Arrivals,
        steps: Steps,
        costs: StepCosts | None,
        token_ms: float,
        prompt_ms: float = 0.0,
    ) -> "Gaps":
        """Split the gaps.

        Args:
            requests, arrivals, steps: Of one run.
            costs: What a step costs; None: unknown.
            token_ms: The time of a token where the server is least disturbed.
            prompt_ms: What a prompt token costs, where `costs` do not say it.
        """
        later = arrivals.later()
        begin_ms, end_ms = arrivals.at_ms[later - 1], arrivals.at_ms[later]
        length_ms = end_ms - begin_ms
        tokens = arrivals.tokens[later]
        usual_ms = float(np.median(length_ms)) if len(later) else token_ms
        base_ms = costs.base_ms if costs else token_ms
        own_ms = np.minimum(tokens * base_ms, length_ms)
        over_ms = length_ms - own_ms
        streams, others = _others(arrivals, later, usual_ms)
        near_ms = np.maximum(NEAR_MS, NEAR * length_ms)
        token_cost_ms = costs.prompt_ms if costs else prompt_ms
        prompts_ms = token_cost_ms * steps.prompt_near(end_ms, near_ms)
        is_long = length_ms >= max(LONG * usual_ms, usual_ms + LONG_MS)
        is_alone = others > OTHERS_WENT_ON
        lacked = np.maximum(CAUGHT_UP_TOKENS, CAUGHT_UP * length_ms / max(token_ms, 1e-9))
        caught_up = tokens >= np.maximum(lacked, 2.5 * arrivals.tokens_together)
        is_early = arrivals.earliest_ms[later] < end_ms - READ_LATE * length_ms
        stream = arrivals.stream[later]
        kinds = np.select(
            [
                ~is_long,
                is_early & (requests.lost[stream] == 0),
                caught_up & is_alone,
                caught_up,
                prompts_ms > PROMPT_SHARE * over_ms,
                is_alone,
            ],
            [Stall.NONE, Stall.CLIENT, Stall.STREAM, Stall.PATH, Stall.PROMPT, Stall.STARVED],
            Stall.ENGINE,
        )
        ends = end_ms == arrivals.last_ms[stream]
        kinds = _with_their_neighbours(kinds, end_ms, ends | (tokens * 2 > lacked))
        caught = np.isin(kinds, (Stall.PATH, Stall.STREAM, Stall.CLIENT))
        stall_ms = np.where(
            is_long, np.where(caught, np.maximum(length_ms - usual_ms, 0.0), over_ms), 0.0
        )
        batch_ms = (costs.stream_ms if costs else 0.0) * np.maximum(streams - 1, 0) * tokens
        batch_ms = np.where(is_long, 0.0, np.minimum(over_ms, batch_ms))
        others_ms = np.where(is_long, 0.0, np.minimum(over_ms - batch_ms, prompts_ms))
        own_ms = np.minimum(own_ms, length_ms - stall_ms)
        return cls(stream, begin_ms, end_ms, kinds, own_ms, batch_ms, others_ms, stall_ms)

    def count(self, kind: Stall) -> int:
        """The number of long gaps of a kind."""
        return int((self.kind == kind).sum())

    def times(self, kind: Stall) -> int:
        """How often gaps of a kind happened, those of several streams at once counted once."""
        chosen = self.kind == kind
        return len(_union(self.begin_ms[chosen], self.end_ms[chosen])[0])

    def covered_ms(self, kind: Stall, begin_ms: Floats, end_ms: Floats) -> Floats:
        """How long stalls of a kind last within each of some stretches of time, ms."""
        chosen = self.kind == kind
        begins, ends = _union(self.begin_ms[chosen], self.end_ms[chosen])
        if not len(begins):
            return np.zeros(len(begin_ms))
        places = np.column_stack([begins, ends]).ravel()
        sums = np.repeat(np.append(0.0, np.cumsum(ends - begins)), 2)[1:-1]
        covered: Floats = np.interp(end_ms, places, sums) - np.interp(begin_ms, places, sums)
        return covered


def _others(arrivals: Arrivals, later: Int64s, usual_ms: float) -> tuple[Floats, Floats]:
    """Count the streams that decode throughout each gap, and tell what share of their usual tokens
    all others got within it.
    """
    begin_ms, end_ms = arrivals.at_ms[later - 1], arrivals.at_ms[later]
    begun = np.searchsorted(np.sort(arrivals.first_ms), begin_ms, side="right")
    ended = np.searchsorted(np.sort(arrivals.last_ms), end_ms)
    streams = np.maximum(begun - ended, 1)
    counts = np.append(0, np.cumsum(np.bincount(arrivals.step)))
    between = counts[arrivals.step[later]] - counts[arrivals.step[later - 1] + 1]
    usual = (streams - 1) * np.maximum((end_ms - begin_ms) / max(usual_ms, 1e-9) - 1, 1)
    share = np.divide(between, usual, out=np.zeros(len(later)), where=usual > 0)
    return streams.astype(float), share


def _with_their_neighbours(kinds: Int64s, end_ms: Floats, may_lack: Bools) -> Int64s:
    """A stream that ends in a stall of the way, or had few tokens to come, cannot catch up: it is
    of the kind of the others then.
    """
    kinds = kinds.copy()
    paths = np.sort(end_ms[kinds == Stall.PATH])
    unclear = np.flatnonzero((kinds == Stall.ENGINE) | (kinds == Stall.PROMPT))
    near = np.searchsorted(paths, end_ms[unclear] + SAME_END_MS) > np.searchsorted(
        paths, end_ms[unclear] - SAME_END_MS
    )
    kinds[unclear[near]] = Stall.PATH
    if (kinds == Stall.STREAM).any():
        kinds[(kinds == Stall.STARVED) & may_lack] = Stall.STREAM
    return kinds


def _union(begins: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Join stretches of time that overlap."""
    if not len(begins):
        return begins, ends
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    is_new = np.append(True, begins[1:] > ends[:-1])
    places = np.flatnonzero(is_new)
    return begins[places], np.append(ends[places[1:] - 1], ends[-1])

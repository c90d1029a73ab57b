"""Steps: the steps of an engine, as the arrivals of all streams show them.

All streams of an engine get their tokens at the ends of its steps, so that arrivals that lie
together are one step.
"""

import numpy as np
from msgspec import Struct

from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.util.arrays import Bools, Floats, Int64s

TOGETHER_MS = 1.5  # events of a stream that come within it came together
CLUSTER_MS = 2.0  # arrivals of several streams that are no further apart may be of one step
SHARE = 0.1  # of the median gap, the same
ALIKE = 1.5  # times the shortest steps, that nearly all are at most
MOST_SHARE = 0.4  # of the median gap, that both are at most


class Arrivals(Struct, frozen=True):
    """Events of a stream that came together; shape (k,), stream by stream.

    Times are ms on one axis on which the servers of a run follow each other, so that streams of
    different servers never meet.

    Attributes:
        stream: The place of its request in the columns.
        at_ms, earliest_ms: When it came, and came at the earliest.
        tokens: Its tokens.
        is_first: Whether it has the first token of its stream.
        step: The number of the step that it ended.
        rank: Its place in the order of time.
        first_ms, last_ms: Of each request, when its first and last tokens came, shape (n,).
    """

    stream: Int64s
    at_ms: Floats
    earliest_ms: Floats
    tokens: Floats
    is_first: Bools
    step: Int64s
    rank: Int64s
    first_ms: Floats
    last_ms: Floats

    @classmethod
    def of(cls, requests: RequestColumns) -> "Arrivals":
        """Group the events of the requests."""
        origin = requests.due.min()
        span = requests.last.max() - origin + 10**10
        lane = requests.target * span - origin
        stream = requests.stream
        at_ms = (requests.event + lane[stream]) * MS
        is_new = np.append(True, np.diff(stream) > 0)
        gaps = np.diff(at_ms, prepend=0.0)
        spans_ms = (requests.last - requests.first) * MS
        usual = float(np.median(spans_ms / np.maximum(np.diff(requests.begin) - 1, 1)))
        begins = is_new | (gaps > min(TOGETHER_MS, 0.25 * usual if usual else TOGETHER_MS))
        places = np.flatnonzero(begins)
        at_ms, is_first, stream_of = at_ms[places], is_new[places], stream[places]
        inside = ~is_first
        median_ms = float(np.median(np.diff(at_ms, prepend=0.0)[inside])) if inside.any() else 10.0
        wide_ms = min(max(CLUSTER_MS, SHARE * median_ms), MOST_SHARE * median_ms)
        order = np.argsort(at_ms, kind="stable")
        number = np.cumsum(np.diff(at_ms[order], prepend=-np.inf) > wide_ms) - 1
        step, rank = np.empty_like(order), np.empty_like(order)
        step[order], rank[order] = number, np.arange(len(order))
        return cls(
            stream_of,
            at_ms,
            (requests.earliest[places] + lane[stream_of]) * MS,
            np.add.reduceat(requests.event_tokens, places),
            is_first,
            step,
            rank,
            (requests.first + lane) * MS,
            (requests.last + lane) * MS,
        )

    def later(self) -> Int64s:
        """The places of arrivals after the first of their streams: each ends a gap, and the one
        before begins it.
        """
        return np.flatnonzero(~self.is_first)

    @property
    def most_streams(self) -> int:
        """How many streams there were at once at most."""
        begun, ended = np.sort(self.first_ms), np.sort(self.last_ms)
        at_once = np.arange(1, len(begun) + 1) - np.searchsorted(ended, begun)
        return int(at_once.max())

    @property
    def tokens_together(self) -> float:
        """Mean tokens of an arrival after the first one of its stream; 1 where there is none."""
        after = self.tokens[~self.is_first]
        return float(after.mean()) if len(after) else 1.0


class Steps(Struct, frozen=True):
    """Steps whose begin is known: a stream has a token at both ends; shape (s,).

    Attributes:
        end_ms: When each ended, on the axis of the arrivals.
        length_ms: How long it took.
        streams: How many streams got tokens at its end.
        prompt: Tokens of the prompts whose answers began at its end.
        in_turn: The share of the gaps of streams that are one step long.
    """

    end_ms: Floats
    length_ms: Floats
    streams: Floats
    prompt: Floats
    in_turn: float

    @classmethod
    def of(cls, requests: RequestColumns, arrivals: Arrivals) -> "Steps":
        """Make the steps of the arrivals."""
        count = int(arrivals.step.max()) + 1
        end_ms = np.full(count, np.inf)
        np.minimum.at(end_ms, arrivals.step, arrivals.at_ms)
        later = arrivals.later()
        one_step = arrivals.step[later] - arrivals.step[later - 1] == 1
        is_known = np.zeros(count, dtype=bool)
        is_known[arrivals.step[later[one_step]]] = True
        weights = arrivals.is_first * requests.prompt[arrivals.stream]
        return cls(
            end_ms[is_known],
            np.diff(end_ms, prepend=0.0)[is_known],
            np.bincount(arrivals.step, minlength=count)[is_known].astype(float),
            np.bincount(arrivals.step, weights, minlength=count)[is_known].astype(float),
            float(one_step.mean()) if len(later) else 1.0,
        )

    def __len__(self) -> int:
        return len(self.end_ms)

    def are_alike(self, token_ms: float) -> bool:
        """Whether steps with prompts are hardly longer than those without.

        Args:
            token_ms: The time of a token where the server is least disturbed.
        """
        return float(np.percentile(self.length_ms, 90)) <= ALIKE * token_ms

    def prompt_near(self, at_ms: Floats, near_ms: Floats) -> Floats:
        """The tokens of prompts that ended near some times.

        Args:
            at_ms: The times.
            near_ms: How near to each.
        """
        sums = np.append(0.0, np.cumsum(self.prompt))
        low = np.searchsorted(self.end_ms, at_ms - near_ms)
        high = np.searchsorted(self.end_ms, at_ms + near_ms, side="right")
        tokens: Floats = sums[high] - sums[low]
        return tokens

"""Bounds: whatever the network and the client do, each printed figure is within its client error of
the same figure of the true arrivals.

A network cuts answers into segments, and delays and reorders them; a client reads in turns, between
which it stalls. What the kernel tells the client of this is in `read`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given

from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.testing.replies import delta
from loadgen.util.clock import now_ns
from tests.helpers.run_facts import CHUNKED, LAST_CHUNK, chunk

US, MS = 1_000, 1_000_000
PROMPT_NS = 50 * US  # so late, a read still keeps the stamp of a segment behind a missing one
REAL = 10**18  # CLOCK_REALTIME less CLOCK_MONOTONIC, ns
TOKEN = chunk(delta(content="x"))
END = chunk(delta("stop")) + LAST_CHUNK
STATISTICS = ("mean", "p50", "p99")


@dataclass(frozen=True)
class Segment:
    """A piece of an answer.

    Attributes:
        data: Its bytes.
        at_ns: When it came, from when the request was sent.
        readable_ns: When it came, or the last one before it if that came later.
        is_reordered: Whether by then any segment has come before an earlier one.
    """

    data: bytes
    at_ns: int
    readable_ns: int
    is_reordered: bool


class Deaf:
    """An owner and a transport that do nothing."""

    def ended(self, connection: Connection) -> None: ...
    def finished(self, connection: Connection, is_complete: bool) -> None: ...
    def write(self, data: bytes) -> None: ...


@st.composite
def segments(draw: st.DrawFn, body: bytes) -> list[Segment]:
    """A way of an answer through a network."""
    lengths = st.sampled_from([100, len(TOKEN) - 2, len(TOKEN), 3 * len(TOKEN)])
    pieces, begin = [CHUNKED], 0
    while begin < len(body):
        end = begin + draw(lengths)
        pieces.append(body[begin:end])
        begin = end
    sent_ns, latest_ns, way, is_reordered = 0, 0, [], False
    for piece in pieces:
        sent_ns += draw(st.sampled_from([1, 20 * US, 1 * MS, 7 * MS]))
        at_ns = sent_ns + draw(st.sampled_from([0, 0, 0, 0, 3 * MS, 40 * MS]))
        is_reordered = is_reordered or at_ns < latest_ns
        latest_ns = max(latest_ns, at_ns)
        way.append(Segment(piece, at_ns, latest_ns, is_reordered))
    return way


def turns(way: Sequence[Segment], stalls_ns: Sequence[int]) -> Iterator[tuple[int, list[Segment]]]:
    """Yield when a client reads, and what, which stalls so long between two turns."""
    unread, at_ns, turn = list(way), 0, 0
    while unread:
        at_ns = max(at_ns + stalls_ns[turn % len(stalls_ns)], unread[0].readable_ns)
        count = sum(segment.readable_ns <= at_ns for segment in unread)
        yield at_ns, unread[:count]
        unread = unread[count:]
        turn += 1


def read(connection: Connection, since_ns: int, at_ns: int, batch: Sequence[Segment]) -> None:
    """Read segments as one piece, with the stamp of the last one."""
    connection.take(
        b"".join(segment.data for segment in batch),
        since_ns + at_ns,
        REAL + since_ns + batch[-1].at_ns,
        True,
        reordered=any(segment.is_reordered for segment in batch),
    )


def arrivals_ns(way: Sequence[Segment], tokens: int) -> list[int]:
    """Return when each token was readable, from when the request was sent."""
    ends = [number * len(TOKEN) - 2 for number in range(1, tokens + 1)]  # without its chunk's end
    received, arrivals = -len(CHUNKED), []
    for segment in way:
        received += len(segment.data)
        while ends and ends[0] <= received:
            arrivals.append(segment.readable_ns)
            del ends[0]
    return arrivals


@given(st.data())
def test_each_figure_is_within_its_bound_of_the_true_arrivals(data: st.DataObject) -> None:
    stall_ns = st.sampled_from([1, 5 * US, 60 * US, 2 * MS, 30 * MS])
    tokens = data.draw(st.integers(1, 6))
    knows_lateness = data.draw(st.booleans())
    answers = range(data.draw(st.integers(1, 3)))
    recorder = Recorder(now_ns(), len(answers))
    truth = {name: Histogram() for name in ("ttft_sent", "e2el_sent", "icl", "tpot")}
    for number in answers:
        read_loop = ReadLoop()
        read_loop.kernel_clock.observe(1000, REAL + 1000, 1000)
        connection = Connection(Deaf(), Deaf(), read_loop)
        way = data.draw(segments(TOKEN * tokens + END))
        reads = list(turns(way, data.draw(st.lists(stall_ns, min_size=1, max_size=4))))
        if knows_lateness:
            read_loop.hook.late_ns = max(at_ns - batch[0].readable_ns for at_ns, batch in reads)
        record = Record(number, 1, tokens, now_ns())
        record.ready = record.due
        connection.send(b"request", record)
        for at_ns, batch in reads:
            read(connection, record.sent, at_ns, batch)
        assert record.outcome is Outcome.OK
        arrivals = arrivals_ns(way, tokens)
        earliest = record.earliest or record.stamps
        for least_ns, true_ns, most_ns in zip(earliest, arrivals, record.stamps, strict=True):
            assert least_ns - record.sent <= true_ns <= most_ns - record.sent + PROMPT_NS
        recorder.add(record)
        truth["ttft_sent"].record(arrivals[0])
        truth["e2el_sent"].record(arrivals[-1])
        for before_ns, after_ns in pairwise(arrivals):
            truth["icl"].record(after_ns - before_ns)
        if tokens > 1:
            truth["tpot"].record((arrivals[-1] - arrivals[0]) // (tokens - 1))
    snapshot = recorder.snapshot()
    for name, values in truth.items():
        for statistic in STATISTICS:
            printed = statistic_ms(snapshot.histograms[name], statistic)
            true = statistic_ms(values, statistic)
            error = client_error_ms(snapshot, name, statistic)
            if true is None:
                assert printed is None
            else:
                assert printed is not None
                assert error is not None
                assert abs(printed - true) <= error * (1 + 1e-9), (name, statistic)

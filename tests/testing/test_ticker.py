"""The ticker writes every event at its time, none earlier, none shifted by another."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.sim.outlet import Outlet
from loadgen.engines.sim.planned import BLANK_TIME, Planned, Ticker
from loadgen.util.clock import now_ns
from tests.helpers.socket_pair import Pair, on_both_loops

EVENT = b'{"plan":%b,"write":%b}\n' % (BLANK_TIME, BLANK_TIME)
NEVER = 1 << 62


class Nowhere:
    """A transport that keeps what it is given; its socket cannot be written to, so everything
    comes here.
    """

    def __init__(self) -> None:
        self.received = b""

    def get_extra_info(self, name: str) -> "Nowhere":
        return self

    def fileno(self) -> int:
        return 0

    def get_write_buffer_size(self) -> int:
        return 1

    def write(self, data: bytes) -> None:
        self.received += data


class Written:
    """Streams on one ticker, and what came of them."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.ended: list[Planned] = []
        self.ticker = Ticker(self.ended.append)
        self.writes: list[np.ndarray] = []

    def add(self, *plan_ns: int, after: bytes = b"") -> Planned:
        plan, write, written = np.array([plan_ns, *np.zeros((2, len(plan_ns)))], dtype=np.int64)
        self.writes.append(write)
        stream = Planned(self.transport, EVENT, after, plan, write, written)
        self.ticker.add(stream)
        return stream

    def tick_all(self) -> int:
        """Tick, by as many turns as it takes; returns when the next event is due."""
        while 0 < (next_ns := self.ticker.tick()) <= now_ns():
            pass
        return next_ns


def events(data: bytes) -> list[dict[str, int]]:
    return [json.loads(line) for line in data.splitlines()]


def test_an_event_tells_its_plan_and_when_it_is_written() -> None:
    written = Written(Nowhere())
    before = now_ns()
    written.add(7, before)
    written.tick_all()
    told = events(written.transport.received)
    assert [each["plan"] for each in told] == [7, before]
    assert [each["write"] for each in told] == written.writes[0].tolist()
    assert before <= told[0]["write"] <= told[1]["write"] <= now_ns()


def test_event_that_is_not_due_is_not_written() -> None:
    written = Written(Nowhere())
    stream = written.add(1, NEVER)
    assert written.tick_all() == NEVER
    assert stream.written == 1
    assert not written.ended


def test_tick_without_streams_does_no_work() -> None:
    assert Written(Nowhere()).ticker.tick() == 0


def test_adding_says_when_the_next_event_of_all_is_due() -> None:
    ticker = Ticker(lambda stream: None)
    made = [
        Planned(Nowhere(), EVENT, b"", *np.array([[due], [0], [0]], dtype=np.int64))  # type: ignore[arg-type]
        for due in (NEVER, NEVER - 1, NEVER + 1)
    ]
    assert [ticker.add(stream) for stream in made] == [NEVER, NEVER - 1, NEVER - 1]


def test_the_end_follows_the_last_event_and_is_told_once() -> None:
    written = Written(Nowhere())
    stream = written.add(1, 2, after=b'{"plan":0,"write":0}\n')
    written.tick_all()
    written.tick_all()
    assert [each["plan"] for each in events(written.transport.received)] == [1, 2, 0]
    assert written.ended == [stream]


def test_closed_stream_is_removed_when_its_next_event_is_due() -> None:
    written = Written(Nowhere())
    stream = written.add(1, 2)
    stream.close()
    assert written.tick_all() == 0
    assert written.transport.received == b""
    assert written.ended == [stream]
    assert written.writes[0].tolist() == [0, 0]


@given(
    st.lists(
        st.lists(st.integers(1, 10**9), min_size=1, max_size=5).map(sorted), min_size=1, max_size=40
    )
)
def test_all_events_of_all_streams_come_in_the_order_of_the_plan(plans: list[list[int]]) -> None:
    written = Written(Nowhere())
    for plan in plans:
        written.add(*plan)
    written.tick_all()
    told = [each["plan"] for each in events(written.transport.received)]
    assert told == sorted(due for plan in plans for due in plan)
    assert len(written.ended) == len(plans)


@pytest.mark.integration
@on_both_loops
async def test_events_go_straight_to_the_socket(pair: Pair) -> None:
    written = Written(pair.transport)
    stream = written.add(1, 2, 3)
    written.tick_all()
    assert stream.held_back == 0
    pair.transport.close()
    assert [each["plan"] for each in events(await pair.receive_all())] == [1, 2, 3]


@pytest.mark.integration
@on_both_loops
async def test_output_held_back_by_a_full_socket_is_counted(pair: Pair) -> None:
    outlet = Outlet(pair.transport)
    while not outlet.held_back:
        outlet.send(b"x" * 10_000)
    assert pair.transport.get_write_buffer_size() > 0


def test_an_event_without_room_for_its_times_is_refused() -> None:
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="not found"):
        Planned(Nowhere(), b'{"plan":%b}' % BLANK_TIME, b"", one, one, one)  # type: ignore[arg-type]


def test_a_plan_and_its_writes_have_one_length() -> None:
    with pytest.raises(ValueError, match="one length"):
        Planned(Nowhere(), EVENT, b"", np.ones(2, dtype=np.int64), *np.ones((2, 1), dtype=np.int64))  # type: ignore[arg-type]

"""Warm-up by time: how many requests are sent, in which order, and when it ends."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.client.warmup import Warmup
from loadgen.core.outcome import Outcome
from loadgen.errors import Unreachable
from loadgen.testing import virtual

ANSWER_S = 0.5


class Server:
    """A transport whose requests are answered after ANSWER_S."""

    def __init__(self, outcome: Outcome = Outcome.OK) -> None:
        self.on_end: Callable[[Any], None] = lambda record: None
        self.sent: list[tuple[float, int]] = []  # when, s, and which row
        self.in_flight = self.most_in_flight = 0
        self._outcome = outcome

    def send(self, record: Any, body: int) -> None:
        loop = asyncio.get_running_loop()
        self.sent.append((round(loop.time() - virtual.EPOCH_NS / 1e9, 6), body))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        loop.call_later(ANSWER_S, self._end, record)

    def _end(self, record: Any) -> None:
        self.in_flight -= 1
        record.outcome = self._outcome
        self.on_end(record)


class Requests:
    """Requests whose body is the number of their row."""

    def record(self, row: int, due: int) -> Any:
        return SimpleNamespace(due=due, outcome=None, status=None, detail=None)

    def body(self, row: int) -> int:
        return row


class Deaf(Server):
    """A transport whose requests are never answered."""

    target = SimpleNamespace(url="deaf")

    def send(self, record: Any, body: int) -> None:
        """Take the request."""


async def warmed(
    server: Server, *, gap_s: float, together: int | None, stopped: Callable[[], bool]
) -> float:
    """Warm the server up for 2 s, and return how long it took, s."""
    warmup: Any = Warmup(server, stopped)  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    await warmup.warm_up_for(2.0, Requests(), range(3), gap_s=gap_s, together=together)
    return loop.time() - begun_s


def never() -> bool:
    return False


def test_a_rate_is_kept_for_the_time_and_the_rows_are_sent_in_turn() -> None:
    server = Server()
    lasted_s = virtual.run(warmed(server, gap_s=0.4, together=None, stopped=never))
    assert server.sent == [(0.0, 0), (0.4, 1), (0.8, 2), (1.2, 0), (1.6, 1)]
    assert lasted_s == pytest.approx(1.6 + ANSWER_S)


def test_a_closed_loop_sends_when_one_has_ended_and_waits_for_all() -> None:
    server = Server()
    lasted_s = virtual.run(warmed(server, gap_s=0.0, together=2, stopped=never))
    assert server.most_in_flight == 2
    assert len(server.sent) == 8
    assert lasted_s == pytest.approx(2.0)
    assert server.in_flight == 0


def test_a_run_that_is_stopped_sends_no_more() -> None:
    server = Server()
    virtual.run(warmed(server, gap_s=0.4, together=None, stopped=lambda: len(server.sent) >= 2))
    assert len(server.sent) == 2


def test_failures_are_warned_of_together(caplog: pytest.LogCaptureFixture) -> None:
    virtual.run(warmed(Server(Outcome.TIMEOUT), gap_s=1.0, together=None, stopped=never))
    assert "2 of 2 warm-up requests failed (timeout: 2)" in caplog.text


def test_a_server_that_answers_nothing_is_not_waited_for_longer_than_it_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loadgen.client.warmup.LAST_ANSWER_S", 0.01)
    warmup: Any = Warmup(Deaf(), never)  # type: ignore[arg-type]
    with pytest.raises(Unreachable, match=r"no success in 0 s at deaf: no answer in 0\.01 s"):
        asyncio.run(warmup.check_ready(Requests(), 0, 0.0))

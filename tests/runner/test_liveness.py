"""Liveness: when a silent server is asked, and what makes it one that hangs."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from loadgen.metrics.progress import Progress
from loadgen.runner import liveness as module
from loadgen.runner.liveness import Answer, CpuSign, Liveness, LogSign, MetricsSign
from loadgen.util.files import TailReader

LIMIT_S = 10.0
DEAF = Answer("", "no response", 1)
DEAD = Answer("connection refused", "no response", 1)
WELL = Answer("", "", 1)


class Moves:
    """A sign that moves when the test says so."""

    name = "log"

    def __init__(self, moved: Iterable[bool] = (), lasts_s: float = float("inf")) -> None:
        self._moved = iter(moved)
        self.lasts_s = lasts_s

    def moved(self, elapsed_s: float) -> bool:
        return next(self._moved, False)


def watch(answer: Answer, *signs: Moves, sees_processes: bool = True) -> Liveness:
    async def ask(limit_s: float) -> Answer:
        assert limit_s == LIMIT_S
        return answer

    return Liveness(
        LIMIT_S,
        ask,
        signs,
        sees_processes=sees_processes,
        complaint=lambda: "; its log says Error",
    )


async def after(liveness: Liveness, *silent_s: float, oldest_s: float = 1e6) -> str | None:
    """What is said last of a run whose last token came at 100 s, so many seconds later."""
    why = None
    for each_s in (0.0, *silent_s):
        why = liveness.add(
            Progress("running", 100.0 + each_s, streamed_tokens=1, oldest_s=oldest_s)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return why


async def test_a_server_is_not_asked_before_the_limit() -> None:
    liveness = watch(DEAF)
    assert await after(liveness, 9.9) is None
    liveness.close(110.0)
    assert liveness.silences == []


async def test_a_silence_begins_with_the_oldest_request_in_flight() -> None:
    liveness = watch(DEAF)
    await after(liveness, 50.0, oldest_s=5.0)
    liveness.close(150.0)
    assert liveness.silences == []


async def test_a_server_that_answers_nothing_and_stands_still_hangs() -> None:
    liveness = watch(DEAF, Moves())
    assert await after(liveness, 10.0, 19.9, 20.0) == (  # it has as long again
        "the server hangs: no token on any stream for 20 s; it does not answer loadgen's own "
        "request (no response); its log stood still; its log says Error"
    )
    (silence,) = liveness.silences
    assert (silence.since_s, silence.for_s, silence.requests) == (100.0, 20.0, 1)
    assert silence.hung


async def test_health_that_fails_shows_a_hang_where_no_process_is_seen() -> None:
    why = await after(watch(DEAD, sees_processes=False), 10.0, 20.0)
    assert "; health: connection refused" in (why or "")


async def test_good_health_alone_keeps_a_server_of_which_no_process_is_seen() -> None:
    """Its prefill may take as long; the limits of its streams end it."""
    liveness = watch(DEAF, Moves(), sees_processes=False)
    assert await after(liveness, 10.0, 20.0, 30.0, 300.0) is None
    liveness.close(400.0)
    assert liveness.silences[0].found == "its health was good, and nothing else of it could be seen"


async def test_a_sign_that_moves_keeps_a_server_as_long_as_it_does() -> None:
    liveness = watch(DEAF, Moves([False, True, False, False]))  # the first of each is the mark
    assert "for 30 s" in (await after(liveness, 10.0, 20.0, 30.0) or "")


async def test_a_busy_processor_explains_no_longer_silence_than_a_first_token_may_take() -> None:
    liveness = watch(DEAF, Moves([True] * 99, lasts_s=30.0))
    assert "for 30 s" in (await after(liveness, 10.0, 20.0, 30.0) or "")


async def test_a_token_of_its_own_keeps_a_server_whose_streams_are_silent() -> None:
    liveness = watch(WELL, Moves())
    assert await after(liveness, 10.0, 20.0, 30.0) is None
    liveness.close(135.0)
    (silence,) = liveness.silences
    assert (silence.for_s, silence.requests) == (35.0, 2)
    assert silence.found == "it answered a request of loadgen's own"


async def test_a_token_ends_the_silence() -> None:
    liveness = watch(DEAF)
    await after(liveness, 10.0)
    liveness.add(Progress("running", 115.0, streamed_tokens=2, oldest_s=1e6))
    (silence,) = liveness.silences
    assert (silence.for_s, silence.hung) == (15.0, False)


async def test_a_limit_of_0_asks_nobody() -> None:
    liveness = Liveness(0.0, pytest.fail)
    assert await after(liveness, 1e5) is None


def test_metrics_move_with_any_value() -> None:
    values = {"generation_tokens": 1.0}
    sign = MetricsSign(lambda: values)
    assert sign.moved(0.0)  # the mark
    assert not sign.moved(1.0)
    values["kv_usage"] = 0.5
    assert sign.moved(2.0)


def test_a_log_moves_with_what_it_has_not_said_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("INFO 10:00:00 Running: 48 reqs, throughput: 0.0\n")
    sign = LogSign(TailReader(path))
    assert sign.moved(0.0)  # the mark
    with path.open("a") as log:
        log.write("INFO 10:00:10 Running: 48 reqs, throughput: 0.0\n")
        log.write('INFO 10:00:11 127.0.0.1:4711 - "GET /health HTTP/1.1" 200 OK\n')
        log.flush()
        assert not sign.moved(10.0)
        log.write("INFO 10:00:20 Prefill batch, #new-token: 8192\n")
    assert sign.moved(20.0)


@pytest.mark.parametrize(("cpu_s", "moved"), [(0.49, False), (0.51, True)])
def test_a_processor_moves_above_what_an_idle_server_takes(
    monkeypatch: pytest.MonkeyPatch, cpu_s: float, moved: bool
) -> None:
    times_s = iter([100.0, 100.0 + cpu_s])
    monkeypatch.setattr(module, "family", set)
    monkeypatch.setattr(module, "family_cpu_s", lambda pids: next(times_s))
    sign = CpuSign([1], 600.0)
    sign.moved(50.0)
    assert sign.moved(60.0) is moved

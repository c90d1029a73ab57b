"""Users who leave, and users who come again after a refusal, in virtual time: the numbers follow
from arithmetic.
"""

import asyncio
from collections.abc import Callable

import pytest

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.testing.memory import Reply, Server
from loadgen.testing.memory_servers import planned
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, START_NS, Run, carried_out

TOKENS = planned(lambda index: [(token + 1) * 10 * MS for token in range(5)])  # one every 10 ms
TEN = Schedule.constant(10, 10)


def refusing(server: Server, times: int, head: bytes = b"", status: int = 429) -> Server:
    """A server that refuses each request so many times, 2 ms after it was sent, before it
    answers.
    """
    seen: dict[int, int] = {}

    def answer(index: int, body: bytes, arrived_ns: int) -> Reply:
        seen[index] = seen.get(index, 0) + 1
        if seen[index] > times:
            return server(index, body, arrived_ns)
        refusal = b"HTTP/1.1 %d No\r\n%bContent-Length: 0\r\n\r\n" % (status, head)
        return Reply([(arrived_ns + 2 * MS, refusal)])

    return answer


def since_due(run: Run, stamp: str) -> list[float]:
    """A stamp of each request, ms after it was due."""
    return [(getattr(record, stamp) - record.due) / MS for record in run.records]


@pytest.mark.parametrize(
    ("disconnect", "events", "closed_ms"),
    [
        ("100%@tokens=3", 3, 30),
        ("100%@after=25ms", 2, 25),
        ("100%@after=5ms", 0, 5),
        ("100%@after=0", 0, 0),
    ],
)
def test_users_leave_after_tokens_or_a_time(disconnect: str, events: int, closed_ms: float) -> None:
    run = carried_out(TOKENS, TEN, RunSettings(disconnect=disconnect, request_rate=10.0))
    assert run.own["outcomes"] == {"disconnected": 10}
    assert {record.events for record in run.records} == {events}
    assert since_due(run, "closed") == [closed_ms] * 10
    assert (run.own["error_rate"], run.result["failed"]) == (None, 0)


@pytest.mark.parametrize("disconnect", ["100%@tokens=6", "100%@after=51ms"])
def test_who_has_the_answer_before_does_not_leave(disconnect: str) -> None:
    run = carried_out(TOKENS, TEN, RunSettings(disconnect=disconnect, request_rate=10.0))
    assert run.own["outcomes"] == {"ok": 10}
    assert (run.own["departures"]["drawn"], run.own["departures"]["disconnected"]) == (10, 0)


def test_the_slot_of_a_user_who_left_is_given_to_the_next() -> None:
    settings = RunSettings(disconnect="100%@tokens=3", max_concurrency=1)
    run = carried_out(TOKENS, Schedule.burst(4), settings)
    assert [(record.closed - START_NS) / MS for record in run.records] == [30, 60, 90, 120]


def test_the_answers_of_others_are_as_if_nobody_had_left() -> None:
    settings = RunSettings(disconnect="50%@tokens=3", request_rate=10.0)
    left, all_stay = carried_out(TOKENS, TEN, settings), carried_out(TOKENS, TEN)
    assert 0 < left.own["departures"]["disconnected"] < 10
    for latency in ("ttft_due", "tpot", "e2el_due"):
        assert left.own["latency_ms"][latency]["p50"] == all_stay.own["latency_ms"][latency]["p50"]


def test_several_workers_draw_what_one_draws() -> None:
    settings = RunSettings(disconnect="50%@tokens=3", request_rate=10.0)
    whole = carried_out(TOKENS, TEN, settings)
    parts = [carried_out(TOKENS, TEN, settings, stripe=(number, 3)) for number in range(3)]
    left = {
        record.index
        for part in parts
        for record in part.records
        if record.outcome is Outcome.DISCONNECTED
    }
    assert left == {
        record.index for record in whole.records if record.outcome is Outcome.DISCONNECTED
    }


RETRY = RunSettings(retry="429", request_rate=10.0)


def test_a_refused_request_is_sent_again_and_its_user_has_waited_for_it() -> None:
    run = carried_out(refusing(TOKENS, 1, b"Retry-After: 1\r\n"), TEN, RETRY)
    assert run.own["outcomes"] == {"ok": 10}
    assert since_due(run, "sent") == [1002] * 10
    assert since_due(run, "first_token") == [1012] * 10
    assert run.own["latency_ms"]["ttft_sent"]["max"] == pytest.approx(10, rel=1e-3)
    assert run.own["latency_ms"]["ttft_due"]["max"] == pytest.approx(1012, rel=1e-3)
    assert run.own["latency_ms"]["lag"]["max"] == 0
    retries = run.own["retries"]
    assert (retries["attempts"], retries["requests"], retries["first_refusal_ms"]["p50"]) == (
        20,
        10,
        2,
    )


def test_the_last_attempt_that_is_refused_fails() -> None:
    run = carried_out(refusing(TOKENS, 5), TEN, RETRY.replace(retry="429@attempts=2"))
    assert run.own["outcomes"] == {"status(429)": 10}
    assert (
        run.own["error_rate"],
        run.own["retries"]["attempts"],
        run.own["retries"]["failed"],
    ) == (1, 20, 10)


def test_another_status_is_not_sent_again() -> None:
    run = carried_out(refusing(TOKENS, 1, status=500), TEN, RETRY)
    assert run.own["outcomes"] == {"status(500)": 10}
    assert (run.own["retries"]["attempts"], run.own["retries"]["requests"]) == (10, 0)


def test_without_the_flag_nothing_is_sent_again() -> None:
    run = carried_out(refusing(TOKENS, 1), TEN)
    assert run.own["outcomes"] == {"status(429)": 10}
    assert run.own["retries"] is None


def test_a_request_that_waits_for_its_retry_keeps_its_slot() -> None:
    settings = RETRY.replace(request_rate=float("inf"), max_concurrency=1)
    run = carried_out(refusing(TOKENS, 1, b"Retry-After: 1\r\n"), Schedule.burst(2), settings)
    assert [(record.sent - START_NS) / MS for record in run.records] == [1002, 1002 + 50 + 1002]


def stop_after(seconds: float) -> Callable[[Load], None]:
    def stop(load: Load) -> None:
        asyncio.get_running_loop().call_later(seconds, load.stop, "interrupted")

    return stop


def test_those_that_wait_for_their_retry_are_cancelled_when_the_run_is_stopped() -> None:
    server = refusing(TOKENS, 1, b"Retry-After: 10\r\n")
    run = carried_out(server, TEN, RETRY, meanwhile=stop_after(1.45))
    assert run.own["outcomes"] == {"cancelled": 10}
    assert (run.snapshot.scheduled, run.snapshot.ended) == (10, 10)
    assert {(record.outcome, record.detail) for record in run.records} == {
        ("cancelled", "interrupted, while it waited to be sent again after status 429")
    }

"""Sessions: a turn is due a think time after the answer before it and repeats that answer."""

import asyncio
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
import pytest

from loadgen.client.load_loop import Load
from loadgen.client.sessions import OpenSessions
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Cause, Outcome
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.metrics.failures import Failures
from loadgen.metrics.snapshot import Snapshot
from loadgen.testing import virtual
from loadgen.testing.memory import Reply, Server
from loadgen.testing.memory_servers import answered, planned
from loadgen.testing.replies import STREAM, delta
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import DRAWN, FOLLOWS
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt
from tests.helpers.run_facts import failed, in_order, measured
from tests.helpers.virtual_runs import MS, START_NS, TARGET, Run, S, carried_out

SERVICE_NS = 30 * MS
# Of any capacity: answers end 30 ms after they were asked for.
SERVER = planned(lambda index: [10 * MS, SERVICE_NS])


def session(turns: int, think_ns: int = 0) -> list[Prompt]:
    """A session that repeats what the server answers."""
    messages: tuple[dict[str, object], ...] = ()
    prompts = []
    for turn in range(turns):
        messages += ({"role": "user", "content": f"question {turn}"},)
        tokens = UNPLANNED if turn else 2
        prompts.append(
            Prompt(
                "",
                tokens,
                2,
                f"test/{turn}",
                messages,
                after=(1,) * (turn > 0),
                think_ns=think_ns * (turn > 0),
            )
        )
        messages += ({"role": "assistant", "content": ANSWER},)
    return prompts


def asked(prompts: Sequence[Prompt]) -> np.ndarray:
    return np.array([FOLLOWS if prompt.follows else DRAWN for prompt in prompts], dtype=np.int64)


def run(server: Server, prompts: list[Prompt], **settings: object) -> Run:
    """A run of all these prompts, by default with sessions that begin once a second."""
    options = {
        "request_rate": 1.0,
        "burstiness": float("inf"),
        "num_prompts": len(prompts),
    } | settings
    made = RunSettings(**options).checked()  # type: ignore[arg-type]
    return carried_out(
        server, Schedule.from_settings(made, 7, asked(prompts)), made, prompts=prompts
    )


def ms(run: Run, stamp: str) -> list[float]:
    """A stamp of every request, ms after the start."""
    return [(getattr(record, stamp) - START_NS) / MS for record in run.records]


def the_books_balance(run: Run) -> bool:
    """Whether no check of group A fails."""
    return all(check["ok"] is not False for check in run.own["checks"] if check["group"] == "A")


# -- when


def test_each_turn_is_due_a_think_time_after_the_end_of_the_one_before_it() -> None:
    made = run(SERVER, session(3, 500 * MS) + session(1))
    assert ms(made, "due") == [0, 530, 1060, 1000]
    assert ms(made, "sent") == ms(made, "due")
    assert made.snapshot.histograms["lag"].max == 0


def test_a_rate_is_that_of_session_starts_and_its_checks_look_at_those_alone() -> None:
    made = run(SERVER, session(4, 700 * MS) * 150, request_rate=10.0, burstiness=1.0)
    checks = {check["name"]: check for check in made.own["checks"]}
    assert checks["rate off schedule"]["ok"]
    value = checks["rate off schedule"]["value"]
    assert value.startswith("0% off the schedule's 10.")
    assert checks["gaps off schedule"]["ok"]
    assert made.own["verdict"] == "VALID"


def test_a_cap_holds_for_further_turns_too_and_their_wait_is_measured() -> None:
    made = run(SERVER, session(2) + session(1), max_concurrency=1, request_rate=100.0)
    # The second session is due at 10 ms, before the second turn of the first one is.
    assert ms(made, "due") == [0, 30, 10]
    assert ms(made, "ready") == ms(made, "sent") == [0, 60, 30]
    assert made.snapshot.histograms["pool_wait"].max == 30 * MS


def test_closed_loop_continues_a_session_before_a_new_one() -> None:
    made = run(SERVER, session(3) * 2, max_concurrency=1, request_rate=float("inf"))
    assert ms(made, "due") == ms(made, "sent") == [0, 30, 60, 90, 120, 150]
    assert made.own["closed_loop"]


def test_closed_loop_begins_other_sessions_in_think_time() -> None:
    made = run(SERVER, session(2, 40 * MS) * 2, max_concurrency=1, request_rate=float("inf"))
    assert ms(made, "due") == [0, 70, 30, 100]
    assert ms(made, "sent") == [0, 70, 30, 100]


def test_a_duration_bounds_when_sessions_begin_and_lets_them_come_to_their_end() -> None:
    prompts = session(3, 2 * S) * 3
    made = run(SERVER, prompts, num_prompts=None, duration=3.0)
    assert made.snapshot.outcomes == {"ok": 9}
    assert ms(made, "due")[6:] == [2000, 4030, 6060]


def test_timed_closed_loop_repeats_sessions_and_sends_none_late() -> None:
    made = run(
        SERVER,
        session(2),
        num_prompts=None,
        duration=0.2,
        max_concurrency=1,
        request_rate=float("inf"),
    )
    assert made.snapshot.outcomes == {"ok": 7}
    assert made.snapshot.scheduled == 7
    assert ms(made, "sent") == [0, 30, 60, 90, 120, 150, 180]


# -- what


def test_turn_repeats_earlier_answers_without_reasoning() -> None:
    bodies: list[bytes] = []

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        bodies.append(body)
        parts = delta(reasoning="hm") + delta(reasoning="so", content=f'"{index}\n')
        parts += delta(content="é\U0001f600") + delta("stop")
        return Reply([(arrived_ns + MS, STREAM + chunk(parts) + LAST_CHUNK)])

    run(server, session(3))
    said = [[message["content"] for message in orjson.loads(body)["messages"]] for body in bodies]
    assert said == [
        ["question 0"],
        ["question 0", '"0\né\U0001f600', "question 1"],
        ["question 0", '"0\né\U0001f600', "question 1", '"1\né\U0001f600', "question 2"],
    ]


@pytest.mark.parametrize(
    "content",
    [rb"\ud83d", b"\xff", rb"a\ud83d\ude00", "\u00fe".encode("latin-1")],
    ids=["half", "ff", "pair", "fe"],
)
def test_an_answer_that_no_json_can_hold_is_repeated_as_one_that_it_can(content: bytes) -> None:
    bodies: list[bytes] = []

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        bodies.append(body)
        event = (
            b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":"stop"}]}\n\n'
            % content
        )
        return Reply([(arrived_ns + MS, STREAM + chunk(event) + LAST_CHUNK)])

    made = run(server, session(2))
    assert made.snapshot.outcomes == {"ok": 2}
    (repeated,) = [
        m["content"] for m in orjson.loads(bodies[1])["messages"] if m["role"] == "assistant"
    ]
    assert repeated in ("\ufffd", "a\U0001f600")


def test_prompts_that_repeat_answers_have_no_planned_length() -> None:
    made = run(SERVER, session(3))
    assert [record.input_tokens for record in made.records] == [2, UNPLANNED, UNPLANNED]
    tokens = made.own["tokens"]
    assert (
        tokens["planned_input_tokens"],
        tokens["unplanned_requests"],
        tokens["unknown_input"],
    ) == (2, 2, 2)
    # This server counts no prompt tokens, so that nobody knows the sum.
    assert made.result["total_input_tokens"] is None
    assert made.result["total_token_throughput"] is None


# -- what goes wrong


def failing(*at: int) -> Server:
    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        if index in at:
            return Reply([(arrived_ns + MS, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")])
        return answered([arrived_ns + SERVICE_NS])

    return server


def test_a_turn_that_fails_ends_its_session_and_no_other() -> None:
    made = run(failing(1), session(4) + session(2))
    assert [str(record.outcome) for record in made.records] == [
        "ok",
        "status",
        "cancelled",
        "cancelled",
        "ok",
        "ok",
    ]
    assert the_books_balance(made)
    assert [record.sent for record in made.records][2:4] == [0, 0]
    assert made.records[2].detail == "never due: request 1 of its session ended as status"
    assert made.snapshot.counters["never_due"] == 2
    checks = {check["name"]: check["ok"] for check in made.own["checks"]}
    assert checks["requests unsent"]
    assert checks["run cut short"]


@pytest.mark.parametrize("fault", [outcome for outcome in Outcome if outcome.cause is Cause.CLIENT])
def test_turns_after_a_fault_of_the_client_are_its_fault_too(
    fault: Outcome, tmp_path: Path
) -> None:
    request_store.write(tmp_path, session(5) * 2, TARGET.body, dict, 10)
    first = failed(0, fault)
    with request_store.Requests(tmp_path) as requests:
        turns = OpenSessions(requests, 10).given_up(first)
    assert [(turn.index, turn.outcome, turn.sent) for turn in turns] == [
        (index, fault, 0) for index in range(1, 5)
    ]
    assert measured([first, *turns]).failures == Failures(of=5, server=0, client=5)


def test_turns_after_a_user_has_left_are_not_sent_and_no_failures() -> None:
    made = run(SERVER, session(3) + session(1), disconnect="100%@tokens=1")
    assert made.snapshot.outcomes == {"disconnected": 4}
    assert [record.sent != 0 for record in made.records] == [True, False, False, True]
    assert (made.snapshot.counters["never_due"], made.own["error_rate"]) == (0, None)
    departures = made.own["departures"]
    assert (departures["drawn"], departures["disconnected"], departures["never_sent"]) == (2, 2, 2)
    assert the_books_balance(made)


def test_a_session_of_which_the_last_turn_fails_is_over() -> None:
    made = run(failing(1), session(2))
    assert made.snapshot.outcomes == {"ok": 1, "status(503)": 1}


def test_a_stop_sends_no_further_turn_and_accounts_for_all_of_them() -> None:
    def stop_soon(load: Load) -> None:
        at_s = (START_NS - virtual.now_ns() + 45 * MS) / S  # in the second turn
        asyncio.get_running_loop().call_later(at_s, load.stop, "enough")

    prompts = session(5) * 3
    settings = RunSettings(request_rate=1.0, burstiness=float("inf"), num_prompts=15)
    schedule = Schedule.from_settings(settings, 7, asked(prompts))
    made = carried_out(SERVER, schedule, settings, prompts=prompts, meanwhile=stop_soon)
    assert made.snapshot.outcomes == {"cancelled": 13, "ok": 2}
    assert made.snapshot.scheduled == made.snapshot.ended == 15
    assert len(made.records) == 2


def test_a_stop_while_a_session_thinks_ends_the_run_at_once() -> None:
    def stop_soon(load: Load) -> None:
        asyncio.get_running_loop().call_later(
            (START_NS - virtual.now_ns() + 100 * MS) / S, load.stop, "enough"
        )

    settings = RunSettings(request_rate=1.0, burstiness=float("inf"), num_prompts=2)
    prompts = session(2, 3600 * S)
    schedule = Schedule.from_settings(settings, 7, asked(prompts))
    made = carried_out(SERVER, schedule, settings, prompts=prompts, meanwhile=stop_soon)
    assert made.snapshot.outcomes == {"cancelled": 1, "ok": 1}


def test_unsent_requests_of_a_partition_keep_their_run_numbers() -> None:
    def stop_soon(load: Load) -> None:
        asyncio.get_running_loop().call_later(
            (START_NS - virtual.now_ns() + 3500 * MS) / S, load.stop, "enough"
        )

    settings = RunSettings(request_rate=1.0, burstiness=float("inf"), num_prompts=12)
    schedule = Schedule.from_settings(settings, 7)
    made = carried_out(SERVER, schedule, settings, stripe=(1, 2), meanwhile=stop_soon)
    assert [record.index for record in made.records] == [1, 3]
    assert made.snapshot.outcomes == {"cancelled": 4, "ok": 2}
    assert [example["index"] for example in made.snapshot.examples["cancelled"]] == [5]


# -- many of them


def test_a_thousand_sessions_of_five_turns_are_all_accounted_for_in_order() -> None:
    failed = set(range(0, 5000, 37))
    made = run(
        failing(*failed),
        session(5, 20 * MS) * 1000,
        request_rate=400.0,
        burstiness=1.0,
        max_concurrency=40,
    )
    assert made.snapshot.ended == made.snapshot.scheduled == len(made.records) == 5000
    assert the_books_balance(made)
    by_session = [made.records[i : i + 5] for i in range(0, 5000, 5)]
    for turns in by_session:
        for before, after in pairwise(turns):
            if before.outcome is Outcome.OK:
                assert after.due == before.closed + 20 * MS
            else:
                assert (after.outcome, after.sent) == (Outcome.CANCELLED, 0)
    never_due = sum(record.outcome is Outcome.CANCELLED for record in made.records)
    assert made.snapshot.counters["never_due"] == never_due > 100
    assert made.own["checks"][0]["ok"]


@pytest.mark.parametrize("stripes", [2, 3])
def test_stripes_of_sessions_merge_into_the_whole(stripes: int) -> None:
    prompts = (session(3, 100 * MS) + session(1) + session(2)) * 100
    settings = RunSettings(request_rate=100.0, num_prompts=len(prompts))
    schedule = Schedule.from_settings(settings, 7, asked(prompts))

    def part(i: int, n: int) -> Snapshot:
        return carried_out(SERVER, schedule, settings, stripe=(i, n), prompts=prompts).snapshot

    whole, together = part(0, 1), reduce(Snapshot.merge, [part(i, stripes) for i in range(stripes)])
    assert together.outcomes == whole.outcomes == {"ok": 600}
    assert in_order(together).rows == in_order(whole).rows
    assert together.counters == whole.counters

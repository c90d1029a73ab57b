"""Sessions as graphs in virtual time: a request is due once the last of those that it follows
has ended.
"""

import asyncio

import orjson
import pytest

from loadgen.client.load_loop import Load
from loadgen.client.sessions import OpenSessions
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing import virtual
from loadgen.testing.memory import Reply, Server
from loadgen.testing.memory_servers import answered
from loadgen.testing.replies import STREAM, delta
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.prompt import ANSWER, Prompt
from tests.helpers.run_facts import failed, steady
from tests.helpers.virtual_runs import MS, START_NS, TARGET, Run, S, carried_out
from tests.integration.virtual_time.test_sessions import asked, ms, run, the_books_balance

SERVES_MS = [10, 30, 50, 20, 5]  # for the requests of DIAMOND


def node(*after: int, think_ms: int = 0) -> Prompt:
    return Prompt("text", 2, 2, "test", after=after, think_ns=think_ms * MS)


# A turn, two agents that it starts, one of which calls twice, and a turn that waits for both
# agents.
DIAMOND = [node(), node(1), node(2, think_ms=3), node(2, think_ms=7), node(1, 2, think_ms=4)]


def serving(*times_ms: int, failing: tuple[int, ...] = ()) -> Server:
    """A server that takes so long for each request of a session; some fail after 1 ms."""

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        if index in failing:
            return Reply([(arrived_ns + MS, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")])
        return answered([arrived_ns + times_ms[index % len(times_ms)] * MS])

    return server


def outcomes(made: Run) -> list[str]:
    return [str(record.outcome) for record in made.records]


# -- when


def test_spawned_requests_are_in_flight_together_and_a_join_waits_for_the_last():
    made = run(serving(*SERVES_MS), DIAMOND)
    # 0: 0 to 10. 1: 10 to 40. 2: 13 to 63. 3 follows 1: 47 to 67. 4 follows 3 (67) and 2 (63).
    assert ms(made, "due") == ms(made, "sent") == [0, 10, 13, 47, 71]
    assert made.snapshot.outcomes == {"ok": 5}
    assert the_books_balance(made)


def test_a_join_waits_for_the_last_whichever_that_is():
    made = run(serving(10, 30, 80, 20, 5), DIAMOND)
    assert ms(made, "due") == [0, 10, 13, 47, 13 + 80 + 4]


def test_sessions_wait_for_their_own_requests_alone():
    made = run(serving(*SERVES_MS), DIAMOND * 3, request_rate=100.0)
    assert ms(made, "due") == [start + at for start in (0, 10, 20) for at in (0, 10, 13, 47, 71)]


def test_a_run_of_random_graphs_honors_every_edge():
    import random

    drawn, prompts = random.Random(5), list[Prompt]()
    for _ in range(300):
        for place in range(drawn.randint(1, 12)):
            count = drawn.randint(1, min(place, 4)) if place else 0
            prompts.append(
                node(
                    *sorted(drawn.sample(range(1, place + 1), count)), think_ms=drawn.randint(0, 40)
                )
            )
    failing = tuple(drawn.sample(range(len(prompts)), 30))
    made = run(
        serving(7, 31, 13, 2, 50, failing=failing), prompts, request_rate=50.0, burstiness=1.0
    )
    assert made.snapshot.ended == made.snapshot.scheduled == len(made.records) == len(prompts)
    by_number = {record.index: record for record in made.records}
    lost = 0
    for number, prompt in enumerate(prompts):
        before = [by_number[number - back] for back in prompt.after]
        record = by_number[number]
        if all(one.outcome is Outcome.OK for one in before):
            assert record.outcome is (Outcome.STATUS if number in failing else Outcome.OK)
            if before:
                assert (
                    record.due == record.sent == max(one.closed for one in before) + prompt.think_ns
                )
        else:
            lost += 1
            assert (record.outcome, record.sent) == (Outcome.CANCELLED, 0)
    assert made.snapshot.counters["never_due"] == lost > 30


def test_a_cap_holds_for_spawned_requests_which_go_before_new_sessions():
    made = run(
        serving(10),
        [node(), node(1), node(2), node(1, 2)] * 2,
        max_concurrency=1,
        request_rate=float("inf"),
    )
    assert ms(made, "sent") == [0, 10, 20, 30, 40, 50, 60, 70]
    assert ms(made, "due") == [0, 10, 10, 30, 40, 50, 50, 70]


def test_a_timed_closed_loop_repeats_whole_graphs():
    made = run(
        serving(10),
        [node(), node(1), node(2), node(1, 2)],
        num_prompts=None,
        duration=0.1,
        max_concurrency=2,
        request_rate=float("inf"),
    )
    assert made.snapshot.outcomes.keys() == {"ok"}
    sent = {record.index: record for record in made.records}
    assert len(sent) > 8
    for number, record in sent.items():
        if number % 4 == 3:
            assert record.due == max(sent[number - 1].closed, sent[number - 2].closed)


@pytest.mark.parametrize("stripes", [2, 3])
def test_stripes_have_whole_graphs(stripes):
    prompts = DIAMOND * 20
    settings = RunSettings(request_rate=100.0, num_prompts=len(prompts))
    schedule = Schedule.from_settings(settings, 7, asked(prompts))
    server = serving(*SERVES_MS)
    whole = {
        record.index: record.due
        for record in carried_out(server, schedule, settings, prompts=prompts).records
    }
    parts = dict[int, int]()
    for i in range(stripes):
        made = carried_out(server, schedule, settings, stripe=(i, stripes), prompts=prompts)
        parts |= {record.index: record.due for record in made.records}
    assert parts == whole


# -- what


def test_a_request_repeats_the_answers_of_the_conversation_of_the_first_that_it_follows():
    said = list[list[str]]()

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        said.append([message["content"] for message in orjson.loads(body)["messages"]])
        return Reply(
            [
                (
                    arrived_ns + (index + 1) * MS,
                    STREAM + chunk(delta(content=f"a{index}") + delta("stop")) + LAST_CHUNK,
                )
            ]
        )

    def turn(name: str, answers: int, *after: int) -> Prompt:
        messages = [{"role": "assistant", "content": ANSWER}] * answers + [
            {"role": "user", "content": name}
        ]
        return Prompt("", 2, 2, "test", tuple(messages), after=after)

    run(
        server,
        [
            turn("main", 0),
            turn("agent", 1, 1),
            turn("agent goes on", 2, 1),
            turn("main goes on", 1, 3, 1),
        ],
    )
    assert said == [
        ["main"],
        ["a0", "agent"],
        ["a0", "a1", "agent goes on"],
        ["a0", "main goes on"],
    ]


@pytest.mark.parametrize(
    "lost", [(), (1,), (2,)], ids=["all answered", "an agent fails", "another fails"]
)
def test_a_session_is_over_once_all_its_requests_have_ended_or_are_given_up(tmp_path, lost):
    request_store.write(tmp_path, DIAMOND * 2, TARGET.body, dict, 10)
    with request_store.Requests(tmp_path) as requests:
        sessions = OpenSessions(requests, 10)
        over, given_up = [], set[int]()
        for index in range(5):
            if index in given_up:
                continue
            record = (failed if index in lost else steady)(5 + index)
            record.turn = index
            if index in lost:
                given_up |= {one.index - 5 for one in sessions.given_up(record)}
            else:
                sessions.next_due(record)
            over.append(sessions.is_over(record))
    assert over == [False] * (len(over) - 1) + [True]


@pytest.mark.parametrize("lost", [(), (1,), (2,), (1, 2)])
def test_nothing_is_kept_of_a_session_that_is_over(tmp_path, lost):
    repeating = [{"role": "assistant", "content": ANSWER}, {"role": "user", "content": "q"}]
    prompts = [
        Prompt(
            "",
            2,
            2,
            "test",
            ({"role": "user", "content": "q"}, *(repeating * repeats)),
            after=after,
        )
        for repeats, after in [(0, ()), (1, (1,)), (1, (2,)), (2, (1, 2))]
    ]
    request_store.write(tmp_path, prompts, TARGET.body, dict, 4)
    with request_store.Requests(tmp_path) as requests:
        sessions, given_up = OpenSessions(requests, 4), set[int]()
        for index in range(4):
            if index in given_up:
                continue
            record = (failed if index in lost else steady)(index)
            record.turn, record.keeps_text = index, True
            if index in lost:
                given_up |= {one.index for one in sessions.given_up(record)}
            else:
                sessions.next_due(record)
        assert (sessions._answers, sessions._joins, sessions._left) == ({}, {}, {})


# -- what goes wrong


def test_a_failed_request_gives_up_all_that_depends_on_it_and_nothing_else():
    made = run(serving(*SERVES_MS, failing=(1,)), DIAMOND)
    assert outcomes(made) == ["ok", "status", "ok", "cancelled", "cancelled"]
    assert {made.records[at].detail for at in (3, 4)} == {
        "never due: request 1 of its session ended as status"
    }
    assert the_books_balance(made)


def test_a_join_that_two_failures_give_up_has_one_record():
    made = run(serving(*SERVES_MS, failing=(1, 2)), DIAMOND)
    assert outcomes(made) == ["ok", "status", "status", "cancelled", "cancelled"]
    assert made.snapshot.ended == made.snapshot.scheduled == 5
    assert made.snapshot.counters["never_due"] == 2


def test_a_stop_accounts_for_spawned_requests_and_joins():
    def stop_soon(load: Load) -> None:
        at_s = (START_NS - virtual.now_ns() + 20 * MS) / S  # both agents are at work
        asyncio.get_running_loop().call_later(at_s, load.stop, "enough")

    settings = RunSettings(request_rate=1.0, burstiness=float("inf"), num_prompts=10)
    prompts = DIAMOND * 2
    made = carried_out(
        serving(*SERVES_MS),
        Schedule.from_settings(settings, 7, asked(prompts)),
        settings,
        prompts=prompts,
        meanwhile=stop_soon,
    )
    assert made.snapshot.outcomes == {"cancelled": 7, "ok": 3}
    assert made.snapshot.scheduled == made.snapshot.ended == 10

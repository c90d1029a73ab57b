"""A population of users: each sends, waits for the answer, thinks, and sends again; nobody else
sends.
"""

import heapq
import math
from collections import defaultdict
from functools import reduce

import numpy as np
import pytest

from loadgen.client.sessions import Population
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.metrics.snapshot import Snapshot
from loadgen.testing.memory import Reply, Server
from loadgen.testing.memory_servers import answered, planned, queued
from loadgen.util.partition import WHOLE
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, START_NS, Run, S, carried_out
from tests.integration.virtual_time.test_sessions import asked, session

SERVICE_NS = 300 * MS
SERVER = planned(lambda index: [100 * MS, SERVICE_NS])  # of any capacity


def run(server: Server, stripe: tuple[int, int] = (0, 1), **settings: object) -> Run:
    made = RunSettings(**settings).implied().checked()  # type: ignore[arg-type]
    return carried_out(server, Schedule.from_settings(made, 7), made, stripe=stripe)


def ns(run: Run, stamp: str) -> list[int]:
    """A stamp of every request, after the start."""
    return [getattr(record, stamp) - START_NS for record in run.records]


# -- constant times: exact


def test_each_user_sends_a_think_time_after_its_answer() -> None:
    made = run(SERVER, users=5, think_time="0.7", duration=20.0)
    by_user = defaultdict(list)
    for sent in ns(made, "sent"):
        by_user[sent % S].append(sent)  # an answer and a think time are 1 s
    assert len(by_user) == 5
    for first, times in by_user.items():
        assert times == [first + S * number for number in range(len(times))]
        assert times[0] < 700 * MS  # the users begin within a think time
        assert times[-1] >= 19 * S
    assert made.snapshot.histograms["lag"].max == 0
    assert ns(made, "due") == ns(made, "sent")


def test_without_a_think_time_users_are_the_slots_of_a_closed_loop() -> None:
    users, slots = (
        run(SERVER, duration=3.0, **load) for load in ({"users": 4}, {"max_concurrency": 4})
    )
    assert ns(users, "sent") == ns(slots, "sent")
    assert ns(users, "due") == ns(slots, "due")


@pytest.mark.parametrize("think_time", ["0.4", "exp:0.4", "0.1:0.7", "lognormal:0.4:0.2"])
@pytest.mark.parametrize("workers", [2, 3])
def test_the_users_of_workers_are_those_of_the_run(workers: int, think_time: str) -> None:
    def part(number: int, count: int) -> Snapshot:
        return run(SERVER, (number, count), users=5, think_time=think_time, duration=0.4).snapshot

    whole = part(0, 1)
    together = reduce(Snapshot.merge, [part(number, workers) for number in range(workers)])
    # Before anybody has been answered, all that is sent is everyone's first request.
    assert sorted(together.sent[together.sent < SERVICE_NS]) == sorted(
        whole.sent[whole.sent < SERVICE_NS]
    )


def test_a_number_of_requests_ends_the_run_when_they_are_answered() -> None:
    made = run(SERVER, users=3, think_time="0.7", num_prompts=10)
    assert made.snapshot.outcomes == {"ok": 10}
    assert [record.index for record in made.records] == list(range(10))


def test_fewer_requests_than_users_are_sent_once() -> None:
    made = run(SERVER, users=5, think_time="0.7", num_prompts=3)
    assert made.snapshot.outcomes == {"ok": 3}


def test_a_duration_ends_the_run_while_users_think() -> None:
    made = run(SERVER, users=2, think_time="60:120", duration=90.0)
    assert made.snapshot.scheduled == made.snapshot.ended == len(made.records)
    assert max(ns(made, "closed")) < 90 * S
    assert made.own["partial"] is None


def test_a_failed_request_does_not_stop_its_user() -> None:
    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        if index % 2:
            return Reply([(arrived_ns + MS, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")])
        return answered([arrived_ns + SERVICE_NS])

    made = run(server, users=1, think_time="1", num_prompts=4)
    first, *_ = ns(made, "sent")
    assert ns(made, "sent") == [first, first + 1300 * MS, first + 2301 * MS, first + 3601 * MS]


# -- sessions


def test_a_user_goes_on_with_its_session_and_then_thinks_before_the_next() -> None:
    prompts = session(2, 50 * MS) * 2
    settings = RunSettings(users=1, think_time="1", num_prompts=4)
    schedule = Schedule.from_settings(settings, 7, asked(prompts))
    made = carried_out(planned(lambda index: [30 * MS]), schedule, settings, prompts=prompts)
    first, *_ = ns(made, "sent")
    assert [at - first for at in ns(made, "due")] == [0, 80 * MS, 1110 * MS, 1190 * MS]


def test_users_have_no_more_requests_in_flight_than_they_are() -> None:
    prompts = session(3, 20 * MS) * 40
    settings = RunSettings(users=4, think_time="exp:0.01", num_prompts=len(prompts))
    schedule = Schedule.from_settings(settings, 7, asked(prompts))
    made = carried_out(queued(lambda index: 10 * MS), schedule, settings, prompts=prompts)
    assert made.snapshot.outcomes == {"ok": 120}
    assert made.result["max_concurrent_requests"] == 4
    assert made.own["closed_loop"]
    assert [
        check["name"]
        for check in made.own["checks"]
        if check["ok"] is False and check["group"] in "ABF"
    ] == []


# -- one server and exponential times: the machine-repairman model

USERS, THINK_S, SERVICE_S, COUNT = 10, 1.0, 0.1, 40_000


def by_hand(population: Population, service_ns: list[int]) -> list[tuple[int, int]]:
    """When each request is due and answered: users before one server, first come, first served,
    ns.
    """
    first = population.beginnings()
    waiting = list(zip(first.due, first.numbers, strict=True))
    heapq.heapify(waiting)
    free_ns, times = 0, dict[int, tuple[int, int]]()
    ends: list[int] = []  # of requests whose users have not sent again

    while waiting or ends:
        if ends and (not waiting or ends[0] <= waiting[0][0]):
            session = population.next_session(heapq.heappop(ends))
            if session is not None:
                heapq.heappush(waiting, (session[1], session[0]))
            continue
        due_ns, number = heapq.heappop(waiting)
        free_ns = max(due_ns, free_ns) + service_ns[number]
        times[number] = (due_ns, free_ns)
        heapq.heappush(ends, free_ns)
    return [times[number] for number in sorted(times)]


@pytest.fixture(scope="module")
def repairman() -> tuple[Run, list[int]]:
    draws = np.random.default_rng([16, *b"service"]).exponential(SERVICE_S * S, COUNT)
    service_ns = np.rint(draws).astype(np.int64).tolist()
    settings = RunSettings(users=USERS, think_time=f"exp:{THINK_S}", num_prompts=COUNT)
    return carried_out(
        queued(service_ns.__getitem__), Schedule.from_settings(settings, 7), settings
    ), service_ns


def test_every_request_is_due_and_answered_as_by_hand(repairman: tuple[Run, list[int]]) -> None:
    made, service_ns = repairman
    population = Population.from_settings(made.settings, WHOLE, range(COUNT))
    assert population is not None
    assert list(zip(ns(made, "due"), ns(made, "last_token"), strict=True)) == by_hand(
        population, service_ns
    )


def test_throughput_and_response_are_those_of_the_machine_repairman_model(
    repairman: tuple[Run, list[int]],
) -> None:
    """With k of N users at the server, they come at (N - k) / Z and are served at 1 / S: a
    birth-death process.

    Over 30 seeds of 40,000 requests, the standard deviation is 0.32 % of the throughput, and 0.96 %
    of the mean response. The bounds are three of them.
    """
    made, _ = repairman
    weights = [math.perm(USERS, k) * (SERVICE_S / THINK_S) ** k for k in range(USERS + 1)]
    throughput = (1 - weights[0] / sum(weights)) / SERVICE_S
    response_s = USERS / throughput - THINK_S
    closed, e2el = made.snapshot.closed, made.snapshot.e2el
    assert COUNT / (closed.max() / S) == pytest.approx(throughput, rel=0.01)
    assert float(e2el.mean()) / S == pytest.approx(response_s, rel=0.03)


def test_a_user_thinks_for_as_long_as_it_was_drawn(repairman: tuple[Run, list[int]]) -> None:
    made, _ = repairman
    ended = sorted(ns(made, "closed"))
    later = [record for record in made.records if record.index >= USERS]
    thinks = np.array([due_of(record) - end for record, end in zip(later, ended, strict=False)]) / S
    # Exponential with mean 1: a quarter is below -log(3/4), half below log 2; 1 % is four standard
    # errors of a share.
    assert float(thinks.mean()) == pytest.approx(THINK_S, rel=0.02)
    for share in (0.25, 0.5, 0.9, 0.99):
        assert float((thinks < -math.log(1 - share)).mean()) == pytest.approx(share, abs=0.01)


def due_of(record: Record) -> int:
    return record.due - START_NS


def test_users_beyond_the_sessions_of_a_run_are_told(caplog: pytest.LogCaptureFixture) -> None:
    settings = RunSettings(users=5, num_prompts=20)
    assert Population.from_settings(settings, WHOLE, range(5)) is not None
    assert caplog.messages == []
    assert Population.from_settings(settings, WHOLE, range(3)) is not None
    assert caplog.messages == ["3 sessions for 5 users: the other users send nothing"]

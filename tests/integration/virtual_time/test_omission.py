"""Coordinated omission: a server stall shows fully in latency from due, and hides in closed
loops.
"""

import math

import pytest

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.testing.memory import Server
from loadgen.testing.memory_servers import distant, planned, queued, stalled
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, START_NS, US, S, carried_out

BASE_MS, STOP_MS, RUN_S = 20, 1400, 30
STOP_NS = START_NS + 10 * S, START_NS + 10 * S + STOP_MS * MS


def p99_ms_in_an_open_loop(server: Server) -> float:
    """From due, under even arrivals; what vLLM means by it, from sent, is the same without a
    cap.
    """
    run = carried_out(server, Schedule.constant(1000, RUN_S * 1000))
    p99: float = run.own["latency_ms"]["ttft_due"]["p99"]
    assert p99 == run.result["p99_ttft_ms"]
    assert run.result["median_ttft_ms"] == pytest.approx(BASE_MS, rel=1e-3)
    assert not run.own["closed_loop"]
    return p99


def test_open_loop_requests_due_in_a_stall_have_waited() -> None:
    """The 20 ms are the network's: the slowest 1 % were due in the first 0.3 s of the stop."""
    server = distant(stalled(planned(lambda index: [0]), *STOP_NS), BASE_MS * MS)
    assert p99_ms_in_an_open_loop(server) == pytest.approx(
        STOP_MS + BASE_MS - 0.01 * RUN_S * 1000, rel=0.005
    )


def test_open_loop_requests_in_flight_in_a_stall_have_waited() -> None:
    """The 20 ms are the server's own work: of the slowest 1 %, those of the last 20 ms before
    the stop take a part.
    """
    server = stalled(planned(lambda index: [BASE_MS * MS]), *STOP_NS)
    assert p99_ms_in_an_open_loop(server) == pytest.approx(
        STOP_MS + 2 * BASE_MS - 0.01 * RUN_S * 1000, rel=0.005
    )


def test_a_closed_loop_omits_it_and_says_that_it_is_one() -> None:
    settings = RunSettings(max_concurrency=8, duration=RUN_S)
    assert math.isinf(settings.request_rate)
    server = stalled(planned(lambda index: [BASE_MS * MS]), *STOP_NS)
    run = carried_out(server, Schedule.from_settings(settings, 0), settings)
    per_s = 8 * 1000 / BASE_MS
    assert (
        run.snapshot.ok
        == run.snapshot.scheduled
        == pytest.approx((RUN_S - STOP_MS / 1000) * per_s, rel=0.01)
    )
    assert run.own["latency_ms"]["ttft_due"]["p99"] == pytest.approx(BASE_MS, rel=1e-3)
    assert run.own["latency_ms"]["ttft_due"]["max"] > STOP_MS
    assert run.own["closed_loop"]


@pytest.mark.parametrize(("count", "reached"), [(1000, 0), (None, 40)])
def test_only_a_closed_loop_without_a_number_tells_how_far_it_is(
    count: int | None, reached: int
) -> None:
    """What it has reached is for whoever makes further prompts: where a number was asked, there
    are none.
    """
    settings, loads = RunSettings(max_concurrency=1, duration=0.8, num_prompts=count), list[Load]()
    server = planned(lambda index: [BASE_MS * MS])
    run = carried_out(server, Schedule.from_settings(settings, 0), settings, meanwhile=loads.append)
    assert run.snapshot.scheduled == 40
    assert loads[0].reached == reached


def test_under_a_cap_the_wait_for_a_slot_is_in_the_latency_from_due_alone() -> None:
    """Every 5 ms a request, one at a time, 10 ms each: the i-th waits 5 ms longer than the one
    before it.
    """
    count, serves_ns = 400, 10 * MS
    settings = RunSettings(
        request_rate=200.0, burstiness=math.inf, max_concurrency=1, num_prompts=count
    )
    schedule = Schedule.from_settings(settings, 0)
    run = carried_out(planned(lambda index: [serves_ns]), schedule, settings)
    waits_ns = [i * serves_ns - due_ns for i, due_ns in enumerate(schedule.due_ns.tolist())]
    assert waits_ns[-1] == pytest.approx(5 * MS * (count - 1))
    assert [record.ready - record.due for record in run.records] == waits_ns
    assert [record.first_token - record.sent for record in run.records] == [serves_ns] * count
    assert [record.first_token - record.due for record in run.records] == [
        wait + serves_ns for wait in waits_ns
    ]
    latency = run.own["latency_ms"]
    assert latency["ttft_sent"]["p99"] == 10
    assert latency["ttft_due"]["max"] == pytest.approx(10 + 5 * (count - 1))
    assert latency["pool_wait"]["mean"] == pytest.approx(5 * (count - 1) / 2)
    assert latency["lag"]["max"] == 0  # waiting for a slot is not our lateness
    assert not run.own["closed_loop"]


def test_cap_moves_the_queue_and_keeps_the_latency_from_due() -> None:
    schedule = Schedule.poisson(500, 5_000, seed=1)
    there = carried_out(queued(lambda index: 1_900_000), schedule)
    here = carried_out(
        queued(lambda index: 1_900_000),
        schedule,
        RunSettings(request_rate=500.0, max_concurrency=1),
    )
    assert here.snapshot.histograms["ttft_due"] == there.snapshot.histograms["ttft_due"]
    assert here.snapshot.histograms["ttft_sent"].max == 1_900_000
    assert there.snapshot.histograms["ttft_sent"].percentile(50) > 1_900_000


# -- our own lateness: answers come while the pacer sleeps, so that they do not wake it on time by
# themselves


def test_client_lateness_is_lag_and_counts_in_latency_from_due() -> None:
    count, serves_ns = 3_000, 10 * MS
    late_ns = [(i * 7_919) % 900_000 + (8 * MS if i % 50 == 0 else 0) for i in range(count)]
    run = carried_out(
        planned(lambda index: [serves_ns]), Schedule.constant(50, count), lateness_ns=iter(late_ns)
    )
    injected, from_due = Histogram(), Histogram()
    for late in late_ns:
        injected.record(late)
        from_due.record(late + serves_ns)
    histograms = run.snapshot.histograms
    assert histograms["lag"] == injected
    assert histograms["ttft_due"] == from_due
    assert histograms["ttft_sent"].min == histograms["ttft_sent"].max == serves_ns
    assert histograms["pool_wait"].max == 0


@pytest.mark.parametrize(
    ("every", "verdict", "failed"),
    [
        (50, "SUSPECT", ["requests sent late", "timing error too large", "other figures off"]),
        (200, "VALID", []),
    ],
)
def test_lateness_of_more_than_one_request_in_a_hundred_makes_a_run_suspect(
    every: int, verdict: str, failed: list[str]
) -> None:
    late_ns = iter([8 * MS if i % every == 0 else 0 for i in range(3_000)])
    run = carried_out(
        planned(lambda index: [10 * MS]), Schedule.constant(50, 3_000), lateness_ns=late_ns
    )
    assert run.own["verdict"] == verdict
    assert [check["name"] for check in run.own["checks"] if check["ok"] is False] == failed


def test_after_a_stall_of_ours_every_request_keeps_the_time_at_which_it_was_due() -> None:
    schedule = Schedule.constant(1000, 20)
    run = carried_out(
        planned(lambda index: [500 * US]), schedule, lateness_ns=iter([10 * MS] + [0] * 20)
    )
    late_ns = [max(0, 10 * MS - due_ns) for due_ns in schedule.due_ns.tolist()]
    assert [record.sent - record.due for record in run.records] == late_ns
    assert run.snapshot.histograms["lag"].total == sum(late_ns)

"""Distortion checks fail, naming the cause, where the client changed what it measured."""

import pytest

from loadgen.checks import distortion
from loadgen.config.settings import RunSettings
from loadgen.core.http1 import Response
from tests.helpers.check_states import failed_checks
from tests.helpers.response_bytes import delta, usage
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    MS,
    answered,
    at,
    chunk,
    failed,
    measured,
    planned,
    run_data,
    steady,
)

GREEN = [steady(i, due=i * 10, ttft=40, gap=10, n=20) for i in range(100)]
OPEN = RunSettings(request_rate=100.0)


def of(records, settings=OPEN, **client):
    """The checks by name."""
    checks = distortion(run_data(records, settings, client=client))
    assert all(
        check.counts is not check.explains for check in checks if check.name != "other figures off"
    )
    return {check.name: check for check in checks}


def beating(*stalls_ms, records=GREEN):
    """The snapshot of a run in which the loop's beats were late by so much."""
    snapshot = measured(records)
    for late in stalls_ms:
        snapshot.histograms["loop_stall"].record(round(late * MS))
    return snapshot


def together(index=0, *, reads=((20, 1), (30, 1), (40, 1))):
    """A record of which each read at a moment brought so many events."""
    record = planned(index, tokens=(10, sum(events for _, events in reads)))
    response = Response()
    response.begin(record)
    response.feed(CHUNKED, at(reads[0][0]))
    for ms, events in reads:
        response.feed(b"".join(chunk(delta(content="x")) for _ in range(events)), at(ms))
    response.feed(chunk(delta("stop") + usage()) + LAST_CHUNK, at(reads[-1][0]))
    return record


def test_an_undisturbed_run_is_green():
    checks = of(beating(*[0.3] * 1000))
    assert failed_checks(checks) == []
    assert {name for name, check in checks.items() if check.ok is None} == {
        "loadgen took CPU time from the server",
        "other programs used the CPU",
    }


def test_a_client_that_left_no_report_is_not_judged():
    cut = of(measured(GREEN, partial="the records stopped"), wall_s=None)
    assert failed_checks(cut) == ["client unseen"]
    assert cut["client unseen"].counts
    seen = of(measured(GREEN, partial="interrupted"))
    assert "client unseen" not in seen


# -- the loop


def test_stalls_of_5_ms_every_20_ms_are_red_by_name():
    # One beat in four falls into a stall and waits for its end.
    late = [5 * (i % 80) / 80 if i % 4 == 0 else 0.1 for i in range(1000)]
    checks = of(beating(*late))
    assert failed_checks(checks) == ["loop stalls"]
    assert checks["loop stalls"].value.endswith(" ms at p99, 4.75 ms at most")


@pytest.mark.parametrize(
    ("gap_ms", "limit"),
    [(3, "0.400 ms"), (20, "2.000 ms"), (30, "3.000 ms"), (40, "4.000 ms"), (400, "4.000 ms")],
)
def test_stalls_are_held_against_the_median_gap_between_events(gap_ms, limit):
    records = [steady(0, gap=gap_ms, n=4)]
    said = of(beating(*[0.1] * 1000, records=records))["loop stalls"].limit
    assert float(said.split()[0]) == pytest.approx(float(limit.split()[0]), rel=1e-3)


def test_rare_stalls_do_not_fail_the_p99():
    checks = of(beating(*[0.1] * 991, *[50] * 9))
    assert checks["loop stalls"].ok
    assert "50 ms at most" in checks["loop stalls"].value


def test_fewer_than_a_thousand_beats_are_too_few_to_judge():
    check = of(beating(*[50] * 999))["loop stalls"]
    assert (check.ok, check.limit) == (None, "the run is too short to tell")


@pytest.mark.parametrize(("share", "expected"), [(0.7, True), (0.71, False)])
def test_a_loop_busy_for_more_than_seven_tenths_of_the_time_is_red(share, expected):
    check = of(GREEN, busy_share=share)["loop busy"]
    assert check.ok is expected
    assert check.limit == "70%"


def test_advice_names_what_else_was_busy():
    checks = of(GREEN, busy_share=0.9, disturbance="other processes used 1.5 of 2 cores")
    assert checks["loop busy"].advice.endswith("(other processes used 1.5 of 2 cores)")


# -- the processor's time


@pytest.mark.parametrize(
    ("others", "stolen", "idle", "expected"),
    [
        (0.2, 0.02, 0.0, None),
        (1.6, 0.0, 0.1, "other processes used 1.6 of 2 cores"),
        (0.3, 0.0, 0.8, None),
        (0.1, 0.046, 0.5, "the hypervisor took 4.6% of the time"),
    ],
)
def test_cores_that_others_take_from_a_local_server_are_red(others, stolen, idle, expected):
    usage = {"cores": 2, "others_cores": others, "stolen_share": stolen, "idle_share": idle}
    check = of(GREEN, **usage)["other programs used the CPU"]
    assert (check.ok, check.counts) == (expected is None, True)
    assert expected is None or check.value == expected


def test_others_take_nothing_from_a_server_elsewhere():
    assert of(GREEN, stolen_share=0.5, idle_share=0.0)["other programs used the CPU"].ok is None


@pytest.mark.parametrize(
    ("name", "fact", "limit"),
    [("CPU throttled", "throttled_s", 0.1), ("CPU stolen", "stolen_share", 0.02)],
)
def test_time_that_a_limit_or_the_hypervisor_took_is_red(name, fact, limit):
    assert failed_checks(of(GREEN, wall_s=10.0, **{fact: limit})) == []
    assert failed_checks(of(GREEN, wall_s=10.0, **{fact: limit * 1.1})) == [name]


def test_garbage_collections_that_took_a_hundredth_of_the_time_are_red():
    for pause_ms, expected in ((9, []), (11, ["GC pauses"])):
        snapshot = measured(GREEN)
        snapshot.histograms["gc_pause"].record(pause_ms * MS)
        checks = of(snapshot, wall_s=1.0)
        assert failed_checks(checks) == expected
        assert checks["GC pauses"].value.endswith(f"of the time, the longest {pause_ms} ms")


def test_requests_that_idle_connections_kept_from_a_thread_are_red():
    name = "threads held by idle connections"
    assert name not in of(GREEN, starved_requests=0)
    checks = of(GREEN, starved_requests=2)
    assert failed_checks(checks) == [name]
    assert checks[name].counts
    assert checks[name].value.startswith("2 of 100 requests waited for a thread")


def test_facts_that_died_with_the_process_are_not_judged():
    checks = of(GREEN, busy_share=None, wall_s=None)
    unjudged = {name for name, check in checks.items() if "left no report" in check.limit}
    assert unjudged == {"loop stalls", "loop busy", "CPU throttled", "CPU stolen", "GC pauses"}
    assert all(checks[name].ok is None for name in unjudged)


# -- the server on the same machine


@pytest.mark.parametrize(
    ("idle", "client_s", "expected"),
    [(0.06, 5.0, True), (0.04, 5.0, False), (0.04, 0.4, True), (0.0, 0.6, False)],
)
def test_cpu_taken_from_a_local_server_is_red(idle, client_s, expected):
    usage = {"idle_share": idle, "machine_cpu_s": 20.0, "cpu_s": client_s, "engine_cpu_s": 10.0}
    assert of(GREEN, **usage)["loadgen took CPU time from the server"].ok is expected


def test_cpu_of_a_server_that_was_not_started_here_is_all_that_is_not_ours():
    usage = {"idle_share": 0.0, "machine_cpu_s": 10.0, "cpu_s": 0.5}
    assert (
        of(GREEN, OPEN.replace(base_url="http://127.0.0.1:8000"), **usage)[
            "loadgen took CPU time from the server"
        ].ok
        is False
    )
    elsewhere = of(GREEN, OPEN.replace(base_url="http://gpu-7:8000"), **usage)[
        "loadgen took CPU time from the server"
    ]
    assert (elsewhere.ok, elsewhere.limit) == (None, "the server is on another machine")


def test_answer_with_a_full_receive_window_is_red():
    record = steady(0)
    record.window_filled = True
    assert failed_checks(of([record])) == ["receive window filled"]


# -- events and reads


def test_events_that_one_read_brought_are_red():
    checks = of([together(i, reads=((20, 1), (30, 2), (40, 1))) for i in range(10)])
    assert failed_checks(checks) == ["events read together"]
    assert (
        checks["events read together"].value == "25% of events came with another (1.333 per read)"
    )


@pytest.mark.parametrize(("pairs", "expected"), [(4, True), (6, False)])
def test_events_read_together_fail_above_a_twentieth(pairs, expected):
    reads = [(20 + 10 * i, 2 if i < pairs else 1) for i in range(100 - pairs)]
    assert of([together(reads=reads)])["events read together"].ok is expected


def test_advice_blames_client_or_server_by_the_busy_share():
    records = [together(i, reads=((20, 5),)) for i in range(10)]
    idle, busy = (
        of(records)["events read together"],
        of(records, busy_share=0.9)["events read together"],
    )
    assert "server or a proxy" in idle.advice
    assert "the client looked late" in busy.advice


def test_bursts_of_events_read_one_by_one_are_red():
    # A proxy that holds four tokens back and sends them 30 us apart.
    tokens = [20 + 40 * (i // 4) + 0.03 * (i % 4) for i in range(40)]
    checks = of([answered(i, tokens=tokens) for i in range(5)])
    assert failed_checks(checks) == ["gaps below 50 us"]
    assert checks["gaps below 50 us"].value == "76.92% of gaps are shorter"


def test_gaps_inside_a_read_are_not_counted_a_second_time():
    checks = of([together(i, reads=((20, 10), (30, 10), (40, 10))) for i in range(5)])
    assert failed_checks(checks) == ["events read together"]
    assert checks["gaps below 50 us"].value == "0% of gaps are shorter"


def test_answers_in_one_read_have_no_gaps_and_no_tokens_no_reads():
    assert of([together(reads=((20, 3),))])["gaps below 50 us"].ok is None
    assert of([failed()])["events read together"].ok is None


def test_every_check_has_one_line_value_limit_and_advice():
    for records in (GREEN, [], [failed()]):
        for check in of(records).values():
            for text in (check.value, check.limit, check.advice):
                assert text
                assert "\n" not in text

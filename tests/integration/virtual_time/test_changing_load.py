"""A concurrency profile: so many requests in flight as it asks at each moment, however many
workers share it.
"""

from functools import reduce

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.metrics.snapshot import Snapshot
from loadgen.testing.memory_servers import planned
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, START_NS, Run, S, carried_out

SERVICE_NS = 300 * MS
SERVER = planned(lambda index: [100 * MS, SERVICE_NS])  # of any capacity


def run(profile: str, stripe: tuple[int, int] = (0, 1)) -> Run:
    settings = RunSettings(concurrency_profile=profile).implied().checked()
    return carried_out(SERVER, Schedule.from_settings(settings, 7), settings, stripe=stripe)


def in_flight(snapshot: Snapshot, at_ns: float) -> int:
    return int(((snapshot.sent <= at_ns) & (snapshot.closed > at_ns)).sum())


def sent_s(made: Run) -> list[float]:
    return [(record.sent - START_NS) / S for record in made.records]


def test_each_step_sends_what_is_missing_and_waits_for_what_is_too_much() -> None:
    made = run("2@1s,4@1s,1@1s")
    assert sent_s(made) == pytest.approx(
        # Two each 0.3 s; at 1 s two more, which end between the first ones; at 2 s four are in
        # flight, and the next one is sent when the last of them has ended; the last one is sent
        # before 3 s.
        [
            *(0, 0, 0.3, 0.3, 0.6, 0.6, 0.9, 0.9),
            *(1, 1, 1.2, 1.2, 1.3, 1.3, 1.5, 1.5, 1.6, 1.6, 1.8, 1.8, 1.9, 1.9),
            *(2.2, 2.5, 2.8),
        ]
    )
    assert made.snapshot.outcomes == {"ok": 25}
    assert made.snapshot.scheduled == made.snapshot.ended == 25


def test_a_pause_sends_nothing_and_the_next_phase_begins_at_its_time() -> None:
    made = run("1@0.5s,0@1s,2@0.5s")
    assert sent_s(made) == pytest.approx([0, 0.3, 1.5, 1.5, 1.8, 1.8])


def test_a_profile_that_ends_with_a_pause_ends() -> None:
    made = run("1@0.5s,0@1s")
    assert sent_s(made) == pytest.approx([0, 0.3])
    assert made.own["partial"] is None


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_workers_together_have_what_a_ramp_asks_at_each_moment(workers: int) -> None:
    profile = "0-12@12s"
    parts = [run(profile, (number, workers)).snapshot for number in range(workers)]
    together = reduce(Snapshot.merge, parts)
    # The value of t seconds is t, and it is rounded.
    moments = np.arange(0.25, 12, 0.5)
    assert [in_flight(together, at_s * S) for at_s in moments] == [
        int(at_s + 0.5) for at_s in moments
    ]
    assert max(in_flight(parts[0], at_s * S) for at_s in moments) == -(-12 // workers)


def test_each_phase_has_its_figures_and_the_time_to_recover() -> None:
    made = run("2@3s,4@3s,2@3s")
    before, burst, after = made.own["phases"]
    assert [phase["load"] for phase in (before, burst, after)] == ["2@3s", "4@3s", "2@3s"]
    assert [phase["requests"] for phase in (before, burst, after)] == [20, 40, 20]
    assert before["ttft_ms"]["p50"] == pytest.approx(100)
    # The last four of the burst end with it.
    assert after["recovered_after_s"] == pytest.approx(0, abs=1e-6)
    assert made.own["closed_loop"]
    assert made.result["steady_state"] is None
    assert made.result["max_concurrency"] == 4


def test_the_books_of_a_profile_balance() -> None:
    made = run("3@1s,6-1@4s")
    assert [
        check["name"]
        for check in made.own["checks"]
        if check["ok"] is False and check["group"] in "ABF"
    ] == []

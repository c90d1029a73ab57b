"""The cause of an inexact figure is what was counted: no core is freed for a bundling server."""

import pytest

from loadgen.checks.distortion import client_error
from loadgen.config.settings import RunSettings
from tests.helpers.run_facts import MS, measured, run_data, steady


def advice(
    *,
    width_ms=8.0,
    read_late_ms=0.05,
    lag_ms=0.0,
    reordered=0,
    user_stamped=0,
    latency_from="due",
    **client,
):
    """What is advised of a run in which the first of 20 tokens of each request may have come so
    much before its stamp.
    """
    records = []
    for index in range(100):
        due = index * 100
        record = steady(due=due, index=index, ttft=40, gap=2, n=20, sent=due + lag_ms)
        late = [round(read_late_ms * MS)] * 20
        earliest = [(0, record.stamps[0] - round(width_ms * MS))]
        record.restore([], earliest=earliest, read_late=late)
        record.reordered, record.user_stamped = reordered, user_stamped
        records.append(record)
    settings = RunSettings(request_rate=10.0, latency_from=latency_from)
    check, _ = client_error(run_data(measured(records), settings, client=client))
    assert not check.ok
    return check.advice


def test_tokens_that_were_read_in_time_are_the_servers_groups():
    assert advice().startswith("the server, or a proxy, sends several tokens")


def test_tokens_that_were_read_late_need_a_core():
    said = advice(read_late_ms=3.0)
    assert said.startswith("100 tokens (5.0%) were read late")
    assert "free a core" in said


def test_lag_is_the_cause_where_it_adds_most_whatever_the_stamps_are():
    """The client lagged, and more than 1 % of the events are inexact."""
    assert ": requests were sent late (lag p99 30.0" in advice(lag_ms=30.0)
    assert advice(lag_ms=30.0, latency_from="sent").startswith("the server, or a proxy")
    assert advice(lag_ms=3.0).startswith("the server, or a proxy")


@pytest.mark.parametrize("late_ms", [0.0, 3.0])
def test_segments_that_the_network_lost_are_counted(late_ms):
    said = advice(reordered=1, read_late_ms=0.0, lag_ms=late_ms)
    assert said.startswith("100 tokens (5.0%) waited for segments that the network lost")
    assert "free a core" not in said


def test_tokens_without_a_stamp_are_counted():
    assert advice(user_stamped=1, read_late_ms=0.0).startswith(
        "100 tokens (5.0%) have no stamp of the kernel's"
    )


def test_slow_clock_is_named():
    said = advice(width_ms=0.8, clock_width_ns=800_000)
    assert said.startswith("to read the clock of this machine twice takes 0.800 ms")
    assert "doctor" in said

"""Pool: as many connections as are likely to be needed at once, and none of what the process cannot have."""

import math

import pytest

from loadgen import machine
from loadgen.errors import BadInput
from loadgen.pool import MOST_WARM, check_limits, warm_count
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    """A process that may have many connections."""
    allow(monkeypatch, 50_000)


def allow(monkeypatch, connections, ports=None):
    by_ports = ports or connections + 1000
    monkeypatch.setattr(
        machine, "most_connections", lambda addresses=1, processes=1: min(connections, addresses * by_ports)
    )
    monkeypatch.setattr(machine, "most_by_ports", lambda: by_ports)


def scheduled(settings, requests):
    return Schedule.from_settings(settings.replace(num_prompts=requests), 0)


@pytest.mark.parametrize(
    ("settings", "requests", "wanted"),
    [
        ({"request_rate": 100.0}, 1000, 200),  # for a guessed latency of 2 s
        ({"request_rate": 100.0}, 50, 50),
        ({"request_rate": 100.0, "max_concurrency": 10}, 1000, 20),  # a connection rests before it is used again
        ({"request_rate": math.inf}, 1000, 1000),
        ({"request_rate": math.inf}, 100_000, MOST_WARM),
        ({"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 30}, 1000, 60),
        ({"request_rate": 100.0, "warm_connections": "7"}, 1000, 7),
    ],
)
def test_connections_are_opened_ahead_for_what_is_likely_to_be_in_flight(settings, requests, wanted):
    made = RunSettings(**settings)
    assert warm_count(made, scheduled(made, requests)) == wanted


@pytest.mark.parametrize(("tokens", "wanted"), [(2, 200), (75, 200), (100, 250)])
def test_long_answers_are_expected_to_be_in_flight_for_longer(tokens, wanted):
    settings = RunSettings(request_rate=100.0)
    assert warm_count(settings, scheduled(settings, 1000), tokens) == wanted


def test_no_more_are_opened_ahead_than_the_process_may_have(monkeypatch):
    allow(monkeypatch, 30)
    settings = RunSettings(request_rate=100.0)
    assert warm_count(settings, scheduled(settings, 1000)) == 30


@pytest.mark.parametrize(
    ("settings", "ports", "flag", "remedy"),
    [
        ({"request_rate": math.inf}, None, "--max-concurrency", "ulimit -n 2000"),
        ({"request_rate": math.inf}, 500, "--max-concurrency", "ip_local_port_range"),
        ({"request_rate": 1.0, "warm_connections": "1000"}, None, "--warm-connections", "ulimit -n 2000"),
    ],
)
def test_what_is_sure_to_need_more_is_refused_with_its_remedy(monkeypatch, settings, ports, flag, remedy):
    allow(monkeypatch, 900, ports)
    with pytest.raises(BadInput) as refused:
        check_limits(RunSettings(**settings), scheduled(RunSettings(**settings), 1000))
    assert str(refused.value).startswith(flag)
    assert remedy in str(refused.value)


@pytest.mark.parametrize("settings", [{"request_rate": 1000.0}, {"request_rate": math.inf, "max_concurrency": 900}])
def test_what_may_do_with_fewer_is_not_refused(monkeypatch, settings):
    allow(monkeypatch, 900)
    check_limits(RunSettings(**settings), scheduled(RunSettings(**settings), 1000))

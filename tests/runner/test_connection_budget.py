"""The number of connections opened ahead, and the limits of the process that refuse or warn."""

import contextlib
import math

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.connection_budget import MAX_WARM, ConnectionBudget
from loadgen.util import machine
from loadgen.util.partition import Partition
from loadgen.workload.arrivals import Schedule

ELSEWHERE, OVER_TLS = "http://10.0.0.1:8000", "https://10.0.0.1:8000"


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    """A process that may have many connections."""
    allow(monkeypatch, 50_000)


def allow(monkeypatch, connections, ports=None):
    by_ports = ports or connections + 1000
    monkeypatch.setattr(
        machine, "max_connections", lambda pairs=1, processes=1: min(connections, pairs * by_ports)
    )
    monkeypatch.setattr(machine, "max_connections_by_ports", lambda: by_ports)


def scheduled(settings, requests):
    return Schedule.from_settings(settings.replace(num_prompts=requests), 0)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("settings", "requests", "wanted"),
    [
        ({"request_rate": 100.0}, 1000, 0),  # idle ones could hold threads of the server
        ({"request_rate": math.inf}, 1000, 1000),
        ({"request_rate": math.inf}, 10_000, 10_000),  # all of them are sure to be in flight
        ({"request_rate": math.inf}, 100_000, 50_000),
        ({"request_rate": math.inf, "max_concurrency": 5000}, 100_000, 5000),
        ({"request_rate": 100.0, "warm_connections": "7"}, 1000, 7),
        # those that may be used; later ones would be too old
        ({"request_rate": 100.0, "base_url": OVER_TLS}, 1000, 100),
        ({"request_rate": 100.0, "base_url": OVER_TLS}, 50, 50),
        ({"request_rate": 100.0, "max_concurrency": 10, "base_url": OVER_TLS}, 1000, 10),
        ({"request_rate": 10_000.0, "base_url": OVER_TLS}, 100_000, MAX_WARM),  # a guess
        (
            {
                "ramp_up_strategy": "linear",
                "ramp_up_start_rps": 1,
                "ramp_up_end_rps": 30,
                "base_url": OVER_TLS,
            },
            1000,
            30,
        ),
    ],
)
def test_connections_are_opened_ahead_for_those_sure_to_be_in_flight_or_over_tls(
    settings, requests, wanted
):
    made = RunSettings(**settings)
    assert ConnectionBudget(made, scheduled(made, requests)).warm_count() == wanted


@pytest.mark.integration
def test_short_answers_need_fewer_connections_ahead():
    settings = RunSettings(request_rate=100.0, base_url=OVER_TLS)
    assert ConnectionBudget(settings, scheduled(settings, 1000)).warm_count(output_tokens=2) == 54


@pytest.mark.integration
def test_warm_connections_are_limited_by_the_process(monkeypatch):
    allow(monkeypatch, 30)
    settings = RunSettings(request_rate=math.inf)
    assert ConnectionBudget(settings, scheduled(settings, 1000)).warm_count() == 30


@pytest.mark.integration
@pytest.mark.parametrize(
    ("settings", "ports", "flag", "remedy"),
    [
        ({"request_rate": math.inf}, None, "--max-concurrency", "ulimit -n 2000"),
        ({"users": 1000}, None, "--users", "ulimit -n 2000"),
        ({"concurrency_profile": "1000@5s"}, None, "--concurrency-profile", "ulimit -n 2000"),
        (
            {"request_rate": math.inf, "base_url": ELSEWHERE},
            500,
            "--max-concurrency",
            "ip_local_port_range",
        ),
        (
            {"request_rate": math.inf, "base_url": ELSEWHERE},
            500,
            "--max-concurrency",
            "--source-address",
        ),
        (
            {"request_rate": 1.0, "warm_connections": "1000"},
            None,
            "--warm-connections",
            "ulimit -n 2000",
        ),
    ],
)
def test_run_over_the_process_limit_is_refused_with_remedy(
    monkeypatch, settings, ports, flag, remedy
):
    allow(monkeypatch, 900, ports)
    with pytest.raises(BadInput) as refused:
        ConnectionBudget(RunSettings(**settings), scheduled(RunSettings(**settings), 1000)).check()
    assert str(refused.value).startswith(flag)
    assert remedy in str(refused.value)


@pytest.mark.integration
@pytest.mark.parametrize(
    "settings", [{"request_rate": 1000.0}, {"request_rate": math.inf, "max_concurrency": 900}]
)
def test_run_that_can_do_with_fewer_connections_is_accepted(monkeypatch, settings):
    allow(monkeypatch, 900)
    ConnectionBudget(RunSettings(**settings), scheduled(RunSettings(**settings), 1000)).check()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("where", "refused"),
    [
        ({"base_url": ELSEWHERE}, True),
        ({"base_url": ELSEWHERE, "source_address": "127.0.0.5,127.0.0.6"}, False),
        ({"base_url": ELSEWHERE, "source_address": "127.0.0.5"}, True),
        ({"base_url": (ELSEWHERE, "http://10.0.0.2:8000")}, False),
        ({"base_url": "http://127.0.0.1:8000"}, False),  # anything in 127.0.0.0/8 can connect to it
        ({"host": "127.0.0.1"}, False),
        ({}, False),  # the simulator
    ],
)
def test_every_address_of_ours_has_the_local_ports_for_itself_to_every_server(
    monkeypatch, where, refused
):
    allow(monkeypatch, 5000, ports=500)
    settings = RunSettings(request_rate=math.inf, **where)
    with (
        pytest.raises(BadInput, match="local ports allow 500")
        if refused
        else contextlib.nullcontext()
    ):
        ConnectionBudget(settings, scheduled(settings, 1000)).check()


@pytest.mark.parametrize(
    ("workers", "of", "said"),
    [
        (1, 1, "this machine's local ports allow 500 to one server"),
        (2, 2, "this machine's local ports allow 500 to one server"),
        (2, 4, None),  # two machines of two processes
        (1, 2, None),
    ],
)
def test_each_machine_of_a_run_has_its_own_local_ports(monkeypatch, workers, of, said):
    allow(monkeypatch, 5000, ports=500)
    settings = RunSettings(request_rate=math.inf, base_url=ELSEWHERE, workers=workers)
    with pytest.raises(BadInput, match=said) if said else contextlib.nullcontext():
        ConnectionBudget(settings, scheduled(settings, 1000), Partition(0, of)).check()


def test_the_part_of_a_machine_that_has_too_few_is_said(monkeypatch):
    allow(monkeypatch, 5000, ports=300)
    settings = RunSettings(request_rate=math.inf, base_url=ELSEWHERE)
    with pytest.raises(
        BadInput,
        match=r"1000 requests at once .* for its part \(500\) this machine's local ports allow 300",
    ):
        ConnectionBudget(settings, scheduled(settings, 1000), Partition(0, 2)).check()


def test_an_open_loop_is_refused_only_where_no_request_at_all_could_be_sent(monkeypatch):
    settings = RunSettings(request_rate=1000.0, num_prompts=2000, base_url=ELSEWHERE)
    schedule = Schedule.from_settings(settings, 0)
    allow(monkeypatch, 1)
    ConnectionBudget(settings, schedule).check()
    allow(monkeypatch, 0)
    with pytest.raises(BadInput, match="may have 0; raise the limit"):
        ConnectionBudget(settings, schedule).check()


@pytest.mark.integration
def test_an_address_that_this_machine_has_not_is_refused():
    # One that no machine has.
    settings = RunSettings(source_address="192.0.2.1", base_url=ELSEWHERE)
    with pytest.raises(BadInput, match=r"--source-address: 192\.0\.2\.1 cannot be used"):
        ConnectionBudget(settings, scheduled(settings, 1)).check()


def test_an_address_of_another_family_than_the_servers_is_refused():
    settings = RunSettings(source_address="127.0.0.5", base_url="http://[::1]:8000")
    with pytest.raises(BadInput, match=r"127\.0\.0\.5 cannot reach ::1"):
        ConnectionBudget(settings, scheduled(settings, 1)).check()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("settings", "tokens", "warned"),
    [
        ({"request_rate": 400.0}, 75, False),  # 800 at once, if they take 2 s
        ({"request_rate": 500.0}, 75, True),
        ({"request_rate": 400.0}, 100, True),  # 2.5 s
        ({"request_rate": 500.0, "max_concurrency": 900}, 75, False),
        ({"request_rate": 500.0, "num_prompts": 900}, 75, False),
    ],
)
def test_likely_excess_of_connections_warns_with_the_remedy(
    monkeypatch, caplog, settings, tokens, warned
):
    allow(monkeypatch, 900)
    made = RunSettings(**{"num_prompts": 10_000} | settings)
    ConnectionBudget(made, Schedule.from_settings(made, 0)).warn(tokens)
    assert [
        "1000 requests are likely to be in flight at once, and this process may have 900"
        in caplog.text,
        "ulimit -n 2000" in caplog.text,
    ] == [warned, warned]


@pytest.mark.integration
def test_a_warning_names_settings_as_their_reader_writes_them(monkeypatch, caplog):
    allow(monkeypatch, 5000, ports=600)
    settings = RunSettings(base_url=ELSEWHERE, num_prompts=10_000, request_rate=500.0)
    ConnectionBudget(settings, Schedule.from_settings(settings, 0)).warn(75)
    assert "give further addresses of this machine with --source-address, or widen" in caplog.text

"""Server metrics against measured values: a check fails where both cannot be true."""

import math

import pytest
from msgspec import structs

from loadgen.checks import GROUPS, examine
from loadgen.checks.server import ALL, ALONE, OVERLONG, RESTARTS, SOONER, TOKENS, TTFT
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.server.series import PromHistogram
from loadgen.metrics.server.telemetry import Telemetry
from tests.helpers.run_facts import answered, at, failed, run_data, unsent
from tests.helpers.server_scrapes import scrape, scraped, telemetry

NAMES = (TTFT, ALONE, RESTARTS, SOONER, TOKENS)
# Ten requests with a TTFT of 20 ms from sent and 5 tokens each, by the server's usage.
RUN = [
    answered(
        n, due=n * 100, tokens=[n * 100 + 20 + i for i in range(5)], counts={"completion_tokens": 5}
    )
    for n in range(10)
]


def ttft(count: int, mean_ms: float) -> PromHistogram:
    return PromHistogram(count, count * mean_ms / 1e3, {0.05: count, math.inf: count})


def said(
    *, requests: int = 10, mean_ms: float = 19.0, tokens: int = 50, took_ms: float = 1.0, **more
):
    """What a server said that had served others before, and these requests in the run."""
    before = {"requests": 100, "generation_tokens": 5000, "ttft": ttft(100, 30)}
    after = {
        "requests": 100 + requests,
        "generation_tokens": 5000 + tokens,
        "ttft": ttft(100, 30) + ttft(more.pop("ttft_count", requests), mean_ms),
    }
    return telemetry(before, after | more, took_ms=took_ms)


def of(telemetry, records=RUN, **facts):
    """The checks by name."""
    return {check.name: check for check in examine(run_data(records, telemetry=telemetry, **facts))}


def states(checks):
    return {name: checks[name].ok for name in NAMES}


def test_a_server_that_says_the_same_is_green():
    assert states(of(said())) == dict.fromkeys(NAMES, True)


def test_probes_are_among_the_requests_of_the_server():
    probes = {"probe_e2el_ns": (9_000_000, 8_000_000), "probes_failed": 1}
    assert [of(said(requests=count), facts=probes)[ALONE].ok for count in (11, 12, 13, 14)] == [
        False,
        True,
        True,
        False,
    ]
    checks = of(said(requests=12), facts=probes)
    assert (checks[TOKENS].ok, checks[TOKENS].limit) == (
        None,
        "the server's numbers include probes",
    )


def test_other_clients_and_the_way_from_the_server_are_notes():
    checks = of(said())
    assert [checks[name].group for name in NAMES] == ["C", "E", "F", "F", "F"]
    assert [checks[name].counts for name in NAMES] == [False, False, True, True, True]
    assert of(said(), settings=RunSettings(strict=True))[ALONE].counts
    assert list(GROUPS) == sorted(GROUPS)


def test_server_checks_do_not_apply_without_metrics():
    checks = of(Telemetry())
    assert states(checks) == dict.fromkeys(NAMES)
    assert {checks[name].limit for name in NAMES} == {"there are no server metrics"}


def test_ttft_may_exceed_the_servers_by_connect_and_transfer():
    check = of(said(mean_ms=13.1, took_ms=2.0))[TTFT]
    assert (check.ok, check.value, check.limit) == (
        True,
        "6.9 ms apart: mean TTFT 20 ms from sent, 13.1 ms by the server",
        "7 ms",
    )
    check = of(said(mean_ms=12.9, took_ms=2.0))[TTFT]
    assert check.ok is False
    assert "in the network, in a proxy" in check.advice


def test_slow_server_may_differ_by_a_twentieth():
    slow = [answered(n, due=n * 10_000, tokens=[n * 10_000 + 1000]) for n in range(10)]
    assert of(said(mean_ms=955, tokens=10), slow)[TTFT].limit == "48.75 ms"


@pytest.mark.parametrize(("mean_ms", "ok"), [(20.9, True), (21.2, False)])
def test_client_ttft_below_the_servers_is_red(mean_ms, ok):
    check = of(said(mean_ms=mean_ms))[SOONER]
    assert check.ok is ok
    assert check.limit == "1 ms"
    assert "stamps or the server's clock are wrong" in check.advice


def test_ttft_of_other_requests_is_not_compared():
    checks = of(said(ttft_count=9))
    assert (checks[TTFT].ok, checks[SOONER].ok, checks[TOKENS].ok) == (None, None, True)


@pytest.mark.parametrize(
    ("tokens", "ok", "apart"), [(50, True, "0%"), (51, False, "1.961%"), (49, False, "2.041%")]
)
def test_output_tokens_are_those_that_the_server_generated(tokens, ok, apart):
    check = of(said(tokens=tokens))[TOKENS]
    assert check.ok is ok
    assert check.value == f"{apart} apart: 50 output tokens, {tokens} by the server"
    assert "the server's usage and its metrics differ" in check.advice


def test_a_count_of_our_own_is_doubted_before_the_server():
    records = [answered(n, tokens=[20 + i for i in range(5)]) for n in range(10)]
    assert "own count may be wrong" in of(said(tokens=60), records)[TOKENS].advice


def test_a_thousandth_of_many_tokens_may_differ():
    assert of(
        said(tokens=10_000),
        [answered(n, tokens=[20], counts={"completion_tokens": 999}) for n in range(10)],
    )[TOKENS].ok


@pytest.mark.parametrize(
    ("requests", "ok", "word", "seen"),
    [
        (10, True, "", "0 too many"),
        (11, False, "other clients used the server", "1 too many"),
        (9, False, "every server", "1 too few"),
    ],
)
def test_served_alone_requires_equal_request_counts(requests, ok, word, seen):
    checks = of(said(requests=requests))
    assert checks[ALONE].ok is ok
    assert word in checks[ALONE].advice
    assert checks[ALONE].value == f"{seen}: {requests} requests by the server, our 10"
    if not ok:
        assert {checks[name].limit for name in (TTFT, SOONER, TOKENS)} == {
            "the server's numbers include requests of other clients"
        }


def test_failed_requests_may_be_served_and_have_unknown_tokens():
    records = [*RUN, failed(10, Outcome.TRUNCATED), unsent(11)]
    for requests in (10, 11):
        checks = of(said(requests=requests), records)
        assert checks[ALONE].ok is True
        assert (
            checks[TOKENS].limit
            == "1 request did not end well, and what the server did for them is unknown"
        )
    assert of(said(requests=12), records)[ALONE].ok is False


@pytest.mark.parametrize(("running", "ok"), [(1, True), (3, False)])
def test_server_without_request_count_is_judged_by_running(running, ok):
    before, after = {"generation_tokens": 7}, {"generation_tokens": 57}
    checks = of(telemetry(before, after, {"running": running, "waiting": 0}))
    assert checks[ALONE].ok is ok
    beyond = f"{running - 1} too many: up to {running} requests at once by the server"
    assert checks[ALONE].value == f"{beyond}, our 1"


@pytest.mark.parametrize(("running", "ok"), [(2, True), (3, False)])
def test_a_server_may_go_on_with_a_request_that_was_given_up(running, ok):
    counts, level = (
        ({"generation_tokens": 7}, {"generation_tokens": 57}),
        {"running": running, "waiting": 0},
    )
    given_up = failed(10, Outcome.DISCONNECTED, due=1000)
    given_up.closed = at(1030)
    checks = of(telemetry(*counts, level), [*RUN, given_up])
    assert checks[ALONE].ok is ok
    assert checks[ALONE].value == (
        f"{running - 2} too many: up to {running} requests at once by the server, our 1, and 1 "
        "that ended without an answer"
    )


def test_a_server_that_counts_neither_is_compared_by_what_it_does_count():
    checks = of(telemetry({"generation_tokens": 7}, {"generation_tokens": 57}))
    assert (checks[ALONE].ok, checks[TOKENS].ok, checks[TTFT].ok) == (None, True, None)
    assert of(telemetry({"requests": 0}, {"requests": 10}))[TOKENS].limit == (
        "the server does not count what it generates"
    )


def test_a_server_that_was_restarted_is_red_and_its_counts_are_not_compared():
    restarted = telemetry(
        {"requests": 100, "generation_tokens": 900},
        {"requests": 9, "generation_tokens": 45},
        {"requests": 1},
    )
    checks = of(restarted)
    assert checks[RESTARTS].ok is False
    assert checks[RESTARTS].value == "2 during the run"
    assert {checks[name].limit for name in (TTFT, ALONE, SOONER, TOKENS)} == {
        "its counters were reset"
    }


def test_metrics_are_not_compared_without_scrapes_around_run():
    source = scraped(scrape(1, running=1, requests=5), scrape(2, requests=15))
    checks = of(Telemetry((source,)))
    assert checks[RESTARTS].ok is True
    assert {checks[name].limit for name in (TTFT, ALONE, SOONER, TOKENS)} == {
        "the server did not answer before the run and after it"
    }


def test_server_without_metrics_is_red_and_ends_comparison():
    checks = of(structs.replace(said(), missing=("http://b:2",)))
    assert checks[ALL].ok is False
    assert "http://b:2" in checks[ALL].value
    assert "--server-metrics" in checks[ALL].advice
    assert states(checks) == dict.fromkeys(NAMES) | {RESTARTS: True}
    assert ALL not in of(said())


def test_a_server_whose_times_are_longer_than_what_was_measured_is_red():
    def check(queue_ms: int):
        timed = answered(10, due=0, tokens=[20, 30])
        timed.add_times({"by": "vllm", "queue": queue_ms * 1_000_000})
        return of(said(), [*RUN, timed])[OVERLONG]

    assert of(said())[OVERLONG].ok is None, "it says none"
    assert check(19).ok is True
    assert (check(22).ok, check(22).value) == (False, "1 of 1 request with times of the server")

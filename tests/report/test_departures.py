"""Users who leave and users who come again: in the result, on the console, and in no latency and
no error rate.
"""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.server.names import OF_LAST_STEP
from loadgen.metrics.server.series import FIRST, LAST
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.sections import server
from tests.helpers import saved_json
from tests.helpers.console_lines import unwrapped
from tests.helpers.run_facts import answered, at, failed, result, run_data
from tests.helpers.server_scrapes import scrape, scraped

# Its seed draws requests 6, 7 and 8 of these ten.
LEAVING = RunSettings(disconnect="40%@tokens=2", seed_arrivals=240, request_rate=10.0)


def left(index: int, *, sent: bool = True) -> Record:
    """A request whose user left after two tokens, or a further turn that was not sent then."""
    record = failed(index, Outcome.DISCONNECTED)
    if not sent:
        record.sent = record.ready = 0
    return record


# The user of request 6 was to leave, and had the answer before.
RUN = [*map(answered, range(7)), left(7), left(8), left(9, sent=False)]


def servers(*then: dict[str, float], level: str = OF_LAST_STEP, **after: float) -> Telemetry:
    """What a server said: nothing before the run, then this after it, and again; vLLM's one
    counter has both ends.
    """
    scrapes = [scrape(-0.1, FIRST, **dict.fromkeys(after, 0.0))]
    scrapes += [scrape(second, LAST, **values) for second, values in enumerate((after, *then), 1)]
    for one in scrapes:
        one.names.update(
            {
                name: "vllm:request_success_total"
                for name in ("requests", "aborted")
                if name in after
            }
        )
        one.names.update({"running": level} if "running" in after else {})
    return Telemetry((scraped(*scrapes),))


def own(telemetry: Telemetry | None = None) -> dict[str, Any]:
    found: dict[str, Any] = result(RUN, LEAVING, telemetry=telemetry)["loadgen"]
    return found


def test_users_who_left_are_in_no_latency_and_no_error_rate() -> None:
    found = result(RUN, LEAVING)
    assert found["loadgen"]["outcomes"] == {"disconnected": 3, "ok": 7}
    assert (found["loadgen"]["error_rate"], found["failed"], found["completed"]) == (0.0, 0, 7)
    assert found["loadgen"]["latency_ms"]["ttft_due"]["count"] == 7
    assert found["loadgen"]["request_sample"]["requests"] == 7


def test_they_are_counted_apart() -> None:
    departures = own()["departures"]
    assert {
        name: departures[name] for name in ("asked", "drawn", "disconnected", "never_sent")
    } == {"asked": "40%@tokens=2", "drawn": 3, "disconnected": 2, "never_sent": 1}
    assert result(RUN)["loadgen"]["departures"] is None


def test_a_turn_that_was_not_sent_ended_nowhere() -> None:
    found = saved_json.result(result(RUN, LEAVING, telemetry=servers(requests=9)))
    assert found.server is not None
    assert ("requests ended", "9", "9") in server.table(found, found.server)


IDLE, BUSY = {"running": 0.0, "waiting": 0.0}, {"running": 1.0, "waiting": 1.0}


@pytest.mark.parametrize(
    ("after", "stopped"),
    [
        ({"requests": 9, "aborted": 2, **IDLE}, True),
        ({"requests": 9, "aborted": 2, **BUSY}, True),
        # it does not count aborted requests, but those that it finished
        ({"requests": 7, "aborted": 0, **IDLE}, True),
        ({"requests": 8, "aborted": 0, **IDLE}, False),
        ({"requests": 12, "aborted": 2, **IDLE}, None),  # other clients used the server
        ({"requests": 7, "aborted": 0, **BUSY}, None),  # the level may be that of the last step
        (IDLE, None),
    ],
)
def test_the_servers_counters_say_whether_it_stopped(
    after: dict[str, float], stopped: bool | None
) -> None:
    assert own(servers(**after))["departures"]["server"]["stopped"] is stopped


def test_a_level_that_is_read_when_asked_shows_that_the_server_works_on() -> None:
    telemetry = servers(level="llamacpp:requests_processing", **BUSY)
    assert own(telemetry)["departures"]["server"]["stopped"] is False


def test_tokens_after_the_run_show_that_the_server_works_on() -> None:
    telemetry = servers({**BUSY, "generation_tokens": 90}, **BUSY, generation_tokens=80)
    assert own(telemetry)["departures"]["server"]["stopped"] is False


def test_without_server_metrics_it_is_not_known() -> None:
    server = own()["departures"]["server"]
    assert set(server.values()) == {None}


def test_what_failed_otherwise_may_be_what_a_server_finished() -> None:
    records = [*RUN, failed(10, Outcome.TIMEOUT)]
    telemetry = servers(requests=8, aborted=0, **IDLE)
    stop = result(records, LEAVING, telemetry=telemetry)["loadgen"]["departures"]["server"]
    assert (stop["finished"], stop["stopped"]) == (1, None)


def test_tokens_that_nobody_read_are_those_beyond_what_came() -> None:
    """Three tokens of each of the seven answers came, and two of a request that failed."""
    records, telemetry = [*RUN, failed(10)], servers(generation_tokens=30, **IDLE)
    stop = result(records, LEAVING, telemetry=telemetry)["loadgen"]["departures"]["server"]
    assert (stop["unread_tokens"], stop["stopped"]) == (30 - 7 * 3 - 2, None)
    assert own(servers(**IDLE))["departures"]["server"]["unread_tokens"] is None


def console(telemetry: Telemetry | None) -> list[str]:
    lines = unwrapped(saved_json.render(result(RUN, LEAVING, telemetry=telemetry)).splitlines())
    start = next(number for number, line in enumerate(lines) if line.startswith("Users who left"))
    return lines[start : start + 2]


def test_the_console_says_who_left_and_whether_the_server_stopped() -> None:
    assert console(servers(requests=9, aborted=2, generation_tokens=24, **IDLE)) == [
        "Users who left (--disconnect 40%@tokens=2): 2, in no latency and no error rate; "
        "of 3 drawn, 1 ended before that; 1 further turn not sent",
        "Did the server stop for them? Yes: it counts 2 aborted requests, it counts no answers "
        "as complete beyond those that were read, it generated 3 tokens that nobody read, it was "
        "idle 1.0 s after the last request ended",
    ]
    assert console(None)[1].startswith("Did the server stop for them? Not known")


# -- users who come again
# -------------------------------------------------------------------------------

AGAIN = RunSettings(retry="429", request_rate=10.0)


def retried(record: Record, attempts: int = 2) -> Record:
    """The request, whose first attempt was refused 4 ms after it was sent; its last one was to
    be sent at 15 ms.
    """
    record.attempts, record.retried_ns, record.first_status = attempts, at(15) - record.ready, 429
    record.first_sent, record.first_closed = at(1), at(5)
    return record


RETRIED = [
    *map(answered, range(5)),
    retried(answered(5, sent=15, tokens=[40, 60])),
    retried(answered(6, sent=15, tokens=[50, 80]), 3),
    retried(failed(7, Outcome.STATUS, sent=15), 3),
]


def test_retries_keep_the_first_attempt_and_what_the_user_saw() -> None:
    retries = result(RETRIED, AGAIN)["loadgen"]["retries"]
    counts = ("attempts", "requests", "ok", "failed", "most_attempts", "first_refusals")
    assert {name: retries[name] for name in counts} == {
        "attempts": 8 + 1 + 2 + 2,
        "requests": 3,
        "ok": 2,
        "failed": 1,
        "most_attempts": 3,
        "first_refusals": {"status(429)": 3},
    }
    latencies = (
        "first_refusal_ms",
        "first_ttft_ms",
        "first_e2el_ms",
        "retried_ttft_ms",
        "retried_e2el_ms",
    )
    assert {name: (retries[name]["count"], retries[name]["mean"]) for name in latencies} == {
        "first_refusal_ms": (3, 4),
        "first_ttft_ms": (5, 20),
        "first_e2el_ms": (5, 40),
        "retried_ttft_ms": (2, 45),
        "retried_e2el_ms": (2, 70),
    }
    assert result(RETRIED)["loadgen"]["retries"] is None


def test_a_retry_is_no_lateness_of_the_client_and_no_wait_for_a_slot() -> None:
    histograms = run_data(RETRIED, AGAIN).snapshot.histograms
    assert (histograms["lag"].max, histograms["pool_wait"].max) == (0, 0)


def test_the_console_has_first_attempts_beside_what_users_saw() -> None:
    lines = unwrapped(saved_json.render(result(RETRIED, AGAIN)).splitlines())
    start = next(number for number, line in enumerate(lines) if line.startswith("Sent again"))
    assert lines[start : start + 6] == [
        "Sent again (--retry 429): 3 requests (status(429) 3), 2 ok in the end, 1 failed; "
        "13 attempts in all, at most 3 of one request",
        "first attempts refused, sent to refusal: p50 4.0, p99 4.0 ms of 3",
        "TTFT of first attempts, from scheduled send: p50 20.0, p99 20.0 ms of 5",
        "TTFT after a retry, from scheduled send: p50 45.0, p99 49.9 ms of 2",
        "E2EL of first attempts, from scheduled send: p50 40.0, p99 40.0 ms of 5",
        "E2EL after a retry, from scheduled send: p50 70.0, p99 79.8 ms of 2",
    ]

"""Checks of the calls to the server: a note if one failed, or if the profiler never started."""

from loadgen.checks import Check, examine
from loadgen.checks.server import FAILED, NOT_BUSY
from loadgen.config.settings import RunSettings
from loadgen.metrics.records.trailer import ServerCall
from tests.helpers.run_facts import run_data, steady
from tests.helpers.server_scrapes import telemetry

WELL = ServerCall("before", "http://a/start_profile", 2.0)
BADLY = ServerCall("after", "http://a/stop_profile", 2.0, "http://a/stop_profile answers 500")
SAID = telemetry({}, {}, {"running": 5})
BUSY = RunSettings(profile=True, profile_batch_threshold=8)


def checks(*calls: ServerCall, settings: RunSettings | None = None) -> dict[str, Check]:
    run = run_data([steady()], calls=calls, settings=settings or RunSettings(), telemetry=SAID)
    return {check.name: check for check in examine(run) if check.name in (FAILED, NOT_BUSY)}


def test_a_run_without_calls_has_no_check_of_them() -> None:
    assert checks() == {}


def test_calls_that_succeed_pass() -> None:
    assert checks(WELL)[FAILED].ok


def test_a_call_that_fails_is_a_note() -> None:
    check = checks(WELL, BADLY)[FAILED]
    assert (check.ok, check.counts, check.group) == (False, False, "E")
    assert check.value == "1 of 2 calls failed: POST http://a/stop_profile answers 500"


def test_a_profiler_that_never_started_is_a_note_with_the_most_that_ran() -> None:
    check = checks(settings=BUSY)[NOT_BUSY]
    assert (check.ok, check.counts) == (False, False)
    assert check.finding == "at most 5 requests running, limit 8 or more"


def test_a_profiler_that_started_passes() -> None:
    assert checks(ServerCall("during", "http://a/start_profile", 2.0), settings=BUSY)[NOT_BUSY].ok

"""A run ends by --stop-when as soon as a look, once a second, finds that a condition holds of
its stretch of time.
"""

from collections.abc import Iterable

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.sketch import MAX_ERROR, Sketch
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.trailer import StopEvent
from loadgen.runner.coordinator import StopConditions

MS = 1_000_000


class Told:
    """The progress of a run in which each second some requests end."""

    def __init__(self, stop_when: str | None) -> None:
        self._conditions = StopConditions(RunSettings(stop_when=stop_when))
        self._ttft, self._ended, self._failed, self._at_s = Histogram(), 0, 0, 0.0

    def second(
        self, ttft_ms: Iterable[float] = (), failed: int = 0, after_s: float = 1.0
    ) -> StopEvent | None:
        for value in ttft_ms:
            self._ttft.record(int(value * MS))
            self._ended += 1
        self._ended += failed
        self._failed += failed
        self._at_s += after_s
        return self._conditions.add(self.now("running"))

    def now(self, phase: str) -> Progress:
        failures = {"refused": self._failed} if self._failed else {}
        ttft = Sketch.of(self._ttft)
        return Progress(
            phase, self._at_s, 0, 0, self._ended, failures=failures, ttft=ttft, e2el=ttft
        )

    @property
    def never_judged(self) -> list[str]:
        return self._conditions.never_judged

    def drains(self) -> StopEvent | None:
        self._at_s += 10
        return self._conditions.add(self.now("draining"))


FAST, SLOW = [100.0] * 200, [3000.0] * 200


def test_a_condition_on_a_stretch_of_time_forgets_what_was_before_it() -> None:
    whole, stretch = Told("ttft_p99>2s"), Told("ttft_p99>2s over 3s")
    assert [told.second(SLOW[:1]) for told in (whole, stretch) for _ in range(2)] == [None] * 4
    found = [stretch.second(FAST) for _ in range(6)]
    assert found == [None] * 6
    event = stretch.second([*FAST[:100], *SLOW[:100]])
    assert event is not None
    assert (event.condition, event.at_s) == ("ttft_p99>2s over 3s", 9.0)
    assert event.value == pytest.approx(3000, rel=MAX_ERROR)
    assert "ttft_p99>2s over 3s: " in str(event)


def test_the_stretch_must_have_passed() -> None:
    told = Told("ttft_p50>2s over 3s")
    assert [told.second(SLOW) is not None for _ in range(3)] == [False, False, True]


def test_a_condition_on_the_whole_run_keeps_what_was() -> None:
    told = Told("ttft_p50>2s")
    assert told.second(FAST) is None
    assert told.second(SLOW[:199]) is None
    assert told.second(SLOW[:100]) is not None


def test_a_percentile_of_too_few_values_is_not_judged() -> None:
    told = Told("ttft_p99>2s")
    assert told.second(SLOW[:99]) is None
    assert told.second(SLOW[:1]) is not None


def test_failed_requests_are_beyond_every_latency() -> None:
    told = Told("ttft_p99>10s")
    assert told.second(FAST) is None
    event = told.second(failed=3)
    assert event is not None
    assert event.value is None
    assert "the percentile is a failed request, at" in str(event)


def test_a_mean_is_of_requests_that_succeeded() -> None:
    told = Told("ttft_mean>2s")
    assert told.second(FAST, failed=50) is None
    event = told.second(SLOW * 10)
    assert event is not None
    assert event.value == pytest.approx((200 * 100 + 2000 * 3000) / 2200)


@pytest.mark.parametrize(("condition", "fires"), [("ttft_max>2s", True), ("ttft_max>4s", False)])
def test_a_maximum_is_that_of_all(condition: str, fires: bool) -> None:
    assert (Told(condition).second([*FAST, *SLOW[:1]]) is not None) is fires


def test_an_error_rate_needs_thirty_requests() -> None:
    told = Told("error_rate>5% over 2s")
    assert told.second(failed=29) is None
    event = told.second(failed=1)
    assert event is not None
    assert (event.value, event.condition) == (1.0, "error_rate>5% over 2s")


def test_an_error_rate_over_a_time_is_of_that_time() -> None:
    told = Told("error_rate>5% over 2s")
    assert told.second(FAST, failed=100) is None  # the first second is no stretch of two yet
    assert told.second(FAST * 20) is None
    assert [told.second(FAST) for _ in range(3)] == [None] * 3
    assert told.second(FAST, failed=30) is not None


def test_errors_are_counted_from_the_first() -> None:
    told = Told("errors>=3")
    assert told.second(failed=2) is None
    event = told.second(failed=1)
    assert event is not None
    assert (event.value, event.shown) == (3, "3")


def test_the_first_condition_that_holds_is_named() -> None:
    event = Told("errors>100,ttft_p50>2s,error_rate>0").second(SLOW, failed=1)
    assert event is not None
    assert event.condition == "ttft_p50>2s"


def test_it_is_looked_at_once_a_second() -> None:
    told = Told("errors>0")
    assert told.second(failed=1, after_s=0.5) is None
    assert told.second(after_s=0.25) is None
    assert told.second(after_s=0.25) is not None


def test_nothing_stops_a_run_that_only_waits_for_answers() -> None:
    told = Told("errors>0")
    told.second(failed=1, after_s=0.5)
    assert told.drains() is None


def test_a_run_without_conditions_has_no_event() -> None:
    assert Told(None).second(SLOW, failed=100) is None


def test_a_condition_for_which_too_little_was_measured_is_told() -> None:
    told = Told("ttft_p99>2s,tpot_p50>1s,errors>5")
    assert told.never_judged == ["ttft_p99>2s", "tpot_p50>1s", "errors>5"]
    assert told.second(FAST) is None
    assert told.never_judged == ["tpot_p50>1s"]

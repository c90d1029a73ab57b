"""The SLO so far: each limit is met, missed, or has too few requests."""

import math

import pytest

from loadgen.cli.live.verdict_so_far import State, slo_so_far
from loadgen.metrics.progress import Progress
from loadgen.stats.percentile_confidence_interval import least_samples
from tests.helpers.live_text import sketch


def state(limits: str, progress: Progress) -> tuple[State, ...]:
    return tuple(one.state for one in slo_so_far(limits, progress))


def ended(*ttft_ms: float, **differs: object) -> Progress:
    ended = len(ttft_ms)
    usual = {"ended": ended, "ok": ended, "ttft": sketch(*ttft_ms), "e2el": sketch(*ttft_ms)}
    return Progress("running", 10.0, **usual | differs)  # type: ignore[arg-type]


def test_percentile_is_judged_once_there_are_enough_requests() -> None:
    needed = least_samples(90)
    assert state("ttft_p90<500ms", ended(*[100] * (needed - 1))) == (State.TOO_FEW,)
    assert state("ttft_p90<500ms", ended(*[100] * needed)) == (State.MET,)
    assert state("ttft_p90<50ms", ended(*[100] * needed)) == (State.MISSED,)


def test_percentile_far_beyond_its_limit_is_missed_before() -> None:
    (one,) = slo_so_far("ttft_p90<50ms", ended(*[100] * 20))
    assert (one.state, one.requests, one.needed) == (State.MISSED, 20, least_samples(90))
    assert state("ttft_p90<50ms", ended(*[10] * 19, 100)) == (State.TOO_FEW,)


def test_limit_within_the_bucket_of_the_value_is_close() -> None:
    """100 ms lies in the bucket from 96.5 to 100.7 ms, of the sketch's sixteenths."""
    needed = least_samples(90)
    at_100 = ended(*[100] * needed)
    assert state("ttft_p90<95ms", at_100) == (State.MISSED,)
    assert state("ttft_p90<98ms", at_100) == (State.CLOSE,)
    assert state("ttft_p90<100.5ms", at_100) == (State.CLOSE,)
    assert state("ttft_p90<105ms", at_100) == (State.MET,)
    assert state("ttft_mean<98ms", at_100)[0] is State.MISSED  # means are exact
    assert state("ttft_p90<98ms", ended(*[100] * (needed - 1))) == (State.TOO_FEW,)


def test_failed_requests_miss_every_limit() -> None:
    failing = ended(*[100] * 120, ended=160, failures={"timeout": 40})
    p50, p95 = slo_so_far("ttft_p50<500ms,ttft_p95<500ms", failing)
    assert (p50.state, p50.value) == (State.MET, pytest.approx(100, rel=0.04))
    assert (p95.state, p95.value) == (State.MISSED, math.inf)
    assert state("ttft_max<500ms", failing) == (State.MISSED,)


def test_cancelled_requests_fail_nothing() -> None:
    assert state("ttft_p50<500ms", ended(*[100] * 90, failures={"cancelled": 500})) == (State.MET,)


def test_means_and_gaps_require_the_default_limit_on_errors() -> None:
    progress = ended(
        *[100] * 700,
        icl=sketch(*[20] * 9000),
        tpot=sketch(*[20] * 700),
        ended=800,
        failures={"timeout": 100},
    )
    icl, tpot, errors = slo_so_far("icl_p99<30ms,tpot_mean<10ms", progress)
    assert (icl.state, icl.requests) == (State.MET, 700)
    assert (tpot.state, tpot.value) == (State.MISSED, pytest.approx(20))
    assert (errors.limit.text, errors.state, errors.value) == (
        "error_rate<1%",
        State.MISSED,
        pytest.approx(0.125),
    )


def test_gaps_of_few_requests_are_too_few() -> None:
    assert state("icl_p99<30ms", ended(*[100] * 9, icl=sketch(*[20] * 9000)))[0] is State.TOO_FEW


def test_nothing_is_met_before_a_request_has_ended() -> None:
    limits = "ttft_p50<1s,tpot_mean<1s,e2el_max<1s,error_rate<1%"
    assert {*state(limits, Progress("running", 1.0, in_flight=3))} == {State.TOO_FEW}

"""The text of missed limits: the limit, the value and its certainty."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from loadgen.report import describe_misses
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, planned, result, steady


def said(limits, records):
    return list(describe_misses(limits, measured(records), "due"))


def test_met_limits_have_no_text():
    assert said("ttft_p99<25ms,error_rate<1%", [steady(n, due=n) for n in range(10)]) == []


def test_a_percentile_of_few_values_says_how_few():
    (line,) = said("ttft_p99<19ms", [steady(n, due=n) for n in range(20)])
    assert line == "ttft_p99<19ms is missed: ttft_p99 is 20.000 ms of 20 values (p99 needs 662)"


def test_limit_within_the_client_error_cannot_be_told():
    (line,) = said("ttft_p99<20ms", [steady(n, due=n) for n in range(20)])
    assert line.startswith("ttft_p99<20ms cannot be told: ttft_p99 is 20.000 ms")
    assert line.endswith("with a timing error of at most 0.062 ms")


def test_a_percentile_of_gaps_says_of_how_many_requests():
    (line,) = said("icl_p99<1ms", [steady(n, due=n, n=100) for n in range(20)])
    assert line.endswith("ms of 1980 values of 20 requests (p99 needs 662)")


def test_a_mean_and_a_maximum_need_no_number_of_requests():
    lines = said("e2el_mean<1ms,e2el_max<1ms", [steady(n, due=n) for n in range(3)])
    assert lines == [
        "e2el_mean<1ms is missed: e2el_mean is 40.000 ms of 3 values",
        "e2el_max<1ms is missed: e2el_max is 40.000 ms of 3 values",
    ]


def planned_and(outcome):
    record = planned(1)
    record.outcome = outcome
    return record


def test_an_error_rate_says_how_the_requests_ended():
    (line,) = said("error_rate<1%", [steady(0), planned_and(Outcome.REFUSED)])
    assert line == "error_rate<1% is missed: error_rate is 50.00% of 2 requests (ok 1, refused 1)"


def test_a_percentile_among_failures_says_how_many_there_were():
    (line,) = said("ttft_p99<25ms", [steady(0), planned_and(Outcome.REFUSED)])
    assert line == "ttft_p99<25ms is missed: 50.00% of 2 requests failed (ok 1, refused 1)"


def test_unmeasured_value_misses_the_limit_as_n_a():
    assert said("tpot_p99<1s", []) == [
        "tpot_p99<1s is missed: tpot_p99 is n/a: nothing was measured"
    ]


def test_latencies_are_those_of_the_clock_that_was_asked():
    late = [steady(n, due=n, sent=n + 15.0) for n in range(3)]
    assert len(list(describe_misses("ttft_max<10ms", measured(late), "due"))) == 1
    assert list(describe_misses("ttft_max<10ms", measured(late), "sent")) == []


def made(records):
    return saved_json.with_snapshot(result(records), measured(records))


def test_result_within_all_limits_passes_assert_slo():
    made([steady()]).assert_slo("ttft_p99<25ms,error_rate<1%")


def test_a_result_that_misses_some_names_each_of_them_in_a_line():
    with pytest.raises(AssertionError) as missed:
        made([steady()]).assert_slo("ttft_p99<1ms,tpot_mean<1s,e2el_max<1ms")
    lines = str(missed.value).splitlines()
    assert [line.split()[0] for line in lines] == ["ttft_p99<1ms", "e2el_max<1ms"]


def test_a_limit_that_is_not_understood_is_bad_input():
    with pytest.raises(BadInput):
        made([steady()]).assert_slo("speed<1ms")

"""What an SLO demands of requests: each limit by itself, shown by the requests that it is on."""

import numpy as np
import pytest

from loadgen.analysis.search.criteria import Gaps, Mean, Share, gaps_ms, of_each
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from tests.helpers import run_facts

ON = RunSettings()


def shown(text: str, *records):
    return of_each(text)[0].shown(records, ON)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("ttft_p99<500ms", [Share]),
        ("ttft_p99<500ms,tpot_p50<50ms,e2el_median<1s", [Share, Share, Share]),
        ("error_rate<1%", [Share]),
        ("itl_p99<50ms,error_rate<2%", [Gaps, Share]),
        ("ttft_mean<500ms,ttfo_p95<1s", [Mean, Share]),
    ],
)
def test_each_limit_demands_something_of_its_own(text, kinds):
    found = of_each(text)
    assert [type(each) for each in found] == kinds
    assert [each.text for each in found] == text.split(",")


def test_a_percentile_is_a_share_of_the_requests():
    """That the p75 TTFT is below 25 ms is that three of four are."""
    records = [run_facts.steady(index, ttft=ttft) for index, ttft in enumerate((10, 20, 24, 400))]
    found = shown("ttft_p75<25ms", *records)
    assert found.part.tolist() == [1, 1, 1, 0]
    assert (found.value, found.wanted) == (0.75, 0.75)


def test_a_request_that_fails_meets_no_share():
    records = run_facts.answered(), run_facts.failed(outcome=Outcome.TRUNCATED)
    assert shown("ttft_p99<1s", *records).part.tolist() == [1, 0]
    assert shown("error_rate<1%", *records).part.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "part", "of"),
    [("icl_p99<10ms", 0, 2), ("icl_p99<=10ms", 2, 2), ("itl_p50<10ms", 0, 2), ("icl_mean<5ms", 20.0, 2)],
)
def test_gaps_are_counted_in_their_requests(text, part, of):
    """An answer at 20, 30 and 40 ms has two gaps; one that failed has none that count."""
    found = shown(text, run_facts.answered(), run_facts.failed(outcome=Outcome.TRUNCATED))
    assert found.part.tolist() == [part, 0]
    assert found.of.tolist() == [of, 0]


def test_the_gap_before_an_event_of_several_tokens_is_as_many_gaps():
    record = run_facts.answered()
    record.restore([record.last_token + 30_000_000], [3])
    gap, count = gaps_ms(record, "itl")
    assert (gap.tolist(), count.tolist()) == ([10, 10, 10], [1, 1, 3])
    assert gaps_ms(record, "icl")[0].tolist() == [10, 10, 30]


@pytest.mark.parametrize("metric", ["ttft", "tpot", "e2el"])
def test_a_mean_is_over_the_requests_that_have_a_value(metric):
    one_token = run_facts.answered(tokens=[20])
    found = shown(f"{metric}_mean<1s", run_facts.answered(), one_token, run_facts.failed(outcome=Outcome.TRUNCATED))
    assert found.of.tolist() == [1, 0 if metric == "tpot" else 1, 0]
    assert found.is_mean
    assert found.value == pytest.approx({"ttft": 20.0, "tpot": 10.0, "e2el": 30.0}[metric])


@pytest.mark.parametrize("text", ["ttft_mean<1s", "itl_p99<50ms,icl_mean<10ms"])
def test_where_nothing_limits_failures_one_of_a_hundred_may_fail(text):
    assert [each.text for each in of_each(text)] == [*text.split(","), "error_rate<1%"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ttft_max<1s", "'ttft_max<1s': no number of requests shows a maximum; write ttft_p99"),
        ("itl_max<1s", "'itl_max<1s': no number of requests shows a maximum; write itl_p99"),
        ("e2el_p0<1s", "'e2el_p0<1s': it is met by any request; write e2el_p99"),
        ("error_rate<=0", "'error_rate<=0': no number of requests shows that; write error_rate<1%"),
    ],
)
def test_what_no_number_of_requests_shows_is_refused(text, why):
    with pytest.raises(BadInput) as refused:
        of_each(text)
    assert str(refused.value) == f"--slo: {why}"


@pytest.mark.parametrize(
    ("text", "enough"),
    [("ttft_p99<1s", 786), ("itl_p99<1s", 786), ("ttft_p95<1s", 151), ("ttft_p50<1s", 100), ("ttft_mean<1s", 100)],
)
def test_a_run_has_as_many_requests_as_can_show_it(text, enough):
    demand = of_each(text)[0]
    assert demand.enough == enough
    all_good = [run_facts.steady(index, ttft=5) for index in range(enough)]
    assert demand.shown(all_good, ON).met(1.0) is True


def test_what_is_shown_of_many_requests_is_one_number_for_each():
    found = shown("itl_p99<50ms", *[run_facts.answered()] * 7)
    assert found.part.shape == found.of.shape == (7,)
    assert found.part.dtype == np.float64


def is_good(record, text, settings=ON):
    """Whether a request meets all limits together."""
    return Share(text, tuple(limit for limit in slo.parse(text) if limit.percentile is not None), 0.99).good(
        record, settings
    )


class TestIsGood:
    @pytest.mark.parametrize(
        ("text", "good"),
        [
            ("ttft_p99<21ms", True),
            ("ttft_p99<20ms", False),
            ("ttft_p99<=20ms", True),
            ("tpot_p99<=10ms", True),
            ("tpot_p99<10ms", False),
            ("e2el_p99<=40ms", True),
            ("e2el_p99<40ms", False),
            ("ttft_p99<30ms,e2el_p99<40ms", False),
            ("ttfo_p99<=20ms", True),
            ("error_rate<1%", True),
        ],
    )
    def test_of_an_answer_at_20_30_and_40_ms(self, text: str, good: bool) -> None:
        assert is_good(run_facts.answered(), text) is good

    def test_times_are_from_due_or_as_the_workload_says_from_sent(self) -> None:
        late = run_facts.answered(ready=15)
        assert not is_good(late, "ttft_p99<10ms")
        assert is_good(late, "ttft_p99<10ms", RunSettings(latency_from="sent"))

    def test_one_that_fails_is_not_good(self) -> None:
        assert not is_good(run_facts.failed(outcome=Outcome.TRUNCATED), "error_rate<1%")

    def test_one_token_has_no_pace_to_be_held_to(self) -> None:
        assert is_good(run_facts.answered(tokens=[20]), "tpot_p99<1us")

    def test_who_only_thinks_never_answers(self) -> None:
        assert not is_good(run_facts.answered(tokens=[], reasoning=[20, 30]), "ttfo_p99<1s")

"""Rules of one result, each with a consistent and an inconsistent value."""

from pathlib import Path

import pytest

from tests.helpers.audited_pages import block, found, only, rules


def test_a_result_whose_numbers_agree_has_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, block(cap=11, e2el=1100)) == []


HALF_A_SECOND = {"duration": 0.5, "in_flight": 100, "ttft": 1, "tpot": 1}
# what a result says, the rule that finds it, what it says, what it should be
WRONG = [
    ({"total": 2100}, "throughput", "total 2100 tok/s", "2010 tok/s"),
    ({"output_rate": 1011, "peak": 2000}, "throughput", "output 1011 tok/s", "1010 tok/s"),
    ({"rate": 10.2}, "throughput", "requests 10.20 req/s", "10 req/s"),
    ({"peak": 10_101}, "peak-throughput", "peak 10101 tok/s", "at most 10100 tok/s"),
    ({"peak": 900, "duration": 9.99}, "peak-throughput", "peak 900 tok/s", "at least 1010 tok/s"),
    (
        {"peak": 20_500, **HALF_A_SECOND},
        "peak-throughput",
        "peak 20500 tok/s",
        "at most 20200 tok/s",
    ),
    ({"peak": 5050, **HALF_A_SECOND}, "peak-throughput", "peak 5050 tok/s", "at least 10100 tok/s"),
    ({"in_flight": 10}, "in-flight", "mean TPOT 10 ms", ""),
    ({"e2el": 1200, "tpot": 11, "itl": 11}, "in-flight", "mean E2EL 1200 ms", "at most 1100 ms"),
    ({"ttft": 0, "in_flight": 12}, "latency-zero", "mean TTFT 0 ms", "above 0"),
    (
        {"ttft": 10_100, "in_flight": 120},
        "latency-bounds",
        "mean TTFT 10100 ms",
        "at most 10000 ms",
    ),
    ({"e2el": 90, "tpot": 10}, "latency-bounds", "mean TTFT 100 ms", "at most 90 ms"),
    ({"e2el": 900}, "tpot", "mean TPOT 10 ms", "8 ms"),
    ({"tpot": 0.99, "itl": 0.99}, "tpot", "mean TPOT 0.99 ms", ""),
    ({"itl": 0}, "itl-zero", "mean ITL 0 ms", "n/a"),
    ({"itl": 4, "e2el": 1100}, "itl", "mean ITL 4 ms", "10 ms"),
    ({"median_itl": 0.09}, "itl-coalesced", "median ITL 0.09 ms", ""),
    ({"itl": 9}, "itl-diluted", "mean ITL 9 ms", "10 ms"),
]


@pytest.mark.parametrize(("given", "rule", "says", "should_be"), WRONG)
def test_inconsistent_value_is_found(
    tmp_path: Path, given: dict, rule: str, says: str, should_be: str
) -> None:
    findings = [finding for finding in found(tmp_path, block(**given)) if finding.rule == rule]
    assert (findings[0].says, findings[0].should_be) == (says, should_be)
    assert not findings[0].note


# -- how far a rule goes


@pytest.mark.parametrize(
    "given",
    [
        {
            "duration": 7.80,
            "total": 20_100 / 7.804,
            "output_rate": 10_100 / 7.804,
            "rate": 100 / 7.804,
            "in_flight": 20,
        },  # of 7.804 s
        {"peak": 20_200, **HALF_A_SECOND},  # by the half second
        {"peak": 10_100, **HALF_A_SECOND},  # all of it within one second
        {"peak": 1010},  # as in every second
        {"cap": 11},  # reached
        {
            "tpot": 10.2,
            "itl": 10.2,
            "e2el": 1100,
        },  # a stream that ends a little after its last token
        {"median_itl": 0.2},  # a fiftieth of the mean
        {"itl": 9.9},  # one event without a token among a hundred
        {"output": 100, "itl": 0, "tpot": 0},  # replies of one token have no gaps
        {"ok": 0, "output": 0, "input": 0, "ttft": 0, "tpot": 0},  # nothing to be judged
    ],
)
def test_consistent_value_passes(tmp_path: Path, given: dict) -> None:
    assert found(tmp_path, block(**given)) == []


def test_replies_of_many_lengths_need_no_room_for_their_mean(tmp_path: Path) -> None:
    assert found(tmp_path, block(output=10_150, in_flight=10)) == []


def test_replies_of_many_lengths_pass_tpot_rules(tmp_path: Path) -> None:
    assert found(tmp_path, block(output=10_150, e2el=900, itl=8, tpot=12, in_flight=20)) == []
    by_chance = 900 / 101.5  # E2EL by tokens
    assert (
        found(tmp_path, block(output=10_150, e2el=900, itl=8, tpot=by_chance, in_flight=20)) == []
    )


def test_tokens_that_the_text_does_not_have_are_noted(tmp_path: Path) -> None:
    def page(tokens: int) -> str:
        line = "Total generated tokens:"
        return block().replace(line, f"Total generated tokens (retokenized): {tokens}\n{line}")

    finding = only(found(tmp_path, page(5_050)), "retokenized")
    assert (finding.says, finding.note) == ("5050 tokens in the text", True)
    assert "10100 were counted" in finding.why
    assert found(tmp_path, page(9_000)) == []


def test_few_replies_with_a_whole_mean_need_not_be_alike(tmp_path: Path) -> None:
    few = {"ok": 99, "output": 99 * 101, "tpot": 8, "e2el": 1000}
    assert found(tmp_path, block(**few)) == []
    assert rules(found(tmp_path, block(**few | {"ok": 100, "output": 100 * 101}))) == {"tpot"}


def test_gaps_are_counted_by_itl_and_tpot(tmp_path: Path) -> None:
    of_4 = {"output": 400, "tpot": 30, "ttft": 100, "in_flight": 11}
    one_more = only(found(tmp_path, block(**of_4, itl=22.5)), "itl-diluted")
    assert not one_more.note
    assert (one_more.should_be, "3/4" in one_more.why) == ("30 ms", True)
    one_less = only(found(tmp_path, block(**of_4, itl=45)), "itl-bundled")
    assert one_less.note
    assert "3/2" in one_less.why


def test_tpot_that_is_ttft_by_tokens_is_called_so(tmp_path: Path) -> None:
    why = only(found(tmp_path, block(e2el=1100, tpot=0.99)), "tpot").why
    assert "100 / 101: no token after the first was seen" in why
    by_both = block(tpot=0.99, itl=0.99)
    assert "100 / 101" in only(found(tmp_path, by_both), "tpot").why
    by_chance = by_both.replace(
        "Median TPOT (ms):                        0.99", "Median TPOT (ms): 0.50"
    )
    assert found(tmp_path, by_chance) == []


def test_a_peak_above_the_cap_is_noted_since_a_second_has_more_than_a_moment(
    tmp_path: Path,
) -> None:
    finding = only(found(tmp_path, block(cap=4)), "peak-concurrency")
    assert (finding.says, finding.should_be, finding.note) == (
        "11 concurrent requests",
        "at most 4",
        True,
    )


def test_percentiles_do_not_fall(tmp_path: Path) -> None:
    text = block().replace(
        "P99 TTFT (ms):                           100.00", "P99 TTFT (ms): 99.00"
    )
    finding = only(found(tmp_path, text), "percentile-order")
    assert (finding.says, finding.should_be) == ("P99 TTFT 99 ms", "at least 100 ms")


def test_a_number_that_was_not_measured_is_none(tmp_path: Path) -> None:
    text = block().replace("P99 TTFT (ms):                           100.00", "P99 TTFT (ms): n/a")
    assert found(tmp_path, text) == []


def test_each_finding_names_its_line(tmp_path: Path) -> None:
    text = "one\ntwo\n" + block(cap=4)
    assert (
        only(found(tmp_path, text), "peak-concurrency").place.line
        == 2 + text.split("\n")[2:].index("Peak concurrent requests:                11.00") + 1
    )


def test_a_block_on_one_line_is_read_as_well_and_its_place_is_its_number(tmp_path: Path) -> None:
    text = "## First\n" + " ".join((block() + "### Second " + block(cap=4)).split())
    finding = only(found(tmp_path, text), "peak-concurrency")
    assert finding.place.within.startswith("block 2")


def test_a_block_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert rules(found(tmp_path, block(total=2100)[:700])) == {"throughput"}
    assert rules(found(tmp_path, block(total=2100)[:700] + block(cap=4))) == {
        "throughput",
        "peak-concurrency",
        "in-flight",
    }


def test_sglangs_own_rows_are_read(tmp_path: Path) -> None:
    text = block().replace(
        "---------------Time to First",
        "Concurrency: 12.00\nMean E2E Latency (ms): 1100.00\n---------------Time to First",
    )
    finding = only(found(tmp_path, text), "in-flight")
    assert (finding.says, finding.should_be) == ("12 in flight on average", "11")

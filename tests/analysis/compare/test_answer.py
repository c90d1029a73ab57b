"""The answer of a comparison: what changed, how sure that is, and what may be wrong."""

from pathlib import Path

import pytest

from loadgen.analysis.compare.answer import Change, Word, change_of
from loadgen.analysis.compare.comparison import compare
from loadgen.analysis.compare.side import Side
from loadgen.document import Colour
from tests.helpers.compared_runs import FEW, recorded, saved, server, starts, unanswered

NO_INTERVALS = "no intervals: this may be chance"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def answered(base: str, new: str, *, anyway: bool = False) -> Change:
    comparison = compare([Side.read("base", base), Side.read("new", new)], anyway=anyway)
    return change_of(comparison, comparison.candidates[0])


def test_word_and_what_is_sure_come_first() -> None:
    found = answered(starts(Path("a"), 20.0, 20.2, 19.9), starts(Path("b"), 10.0, 10.1, 9.9))
    assert found.word is Word.FASTER
    assert dict(found.answer.parts) == {
        '"new" is FASTER: TTFT p50 -50.1% (-51.2 to -48.9)': Colour.GREEN,
        "also faster: TPOT p50 -50.1% (-51.5 to -48.7), ICL p50 -50.1% (-51.5 to -48.7), "
        "E2EL p50 -50.1% (-51.1 to -49.0)": Colour.NONE,
        "undecided: req/s +2.8% (-2.9 to +8.8)": Colour.NONE,
        "95% intervals from 3 runs of each": Colour.NONE,
        "all VALID": Colour.GREEN,
    }


def test_the_largest_measured_change_is_the_main_number_and_that_of_the_server_follows() -> None:
    def side(folder: str, ttft_ms: float, server_ms: float) -> str:
        for number, factor in enumerate((1.0, 1.01, 0.99)):
            unknown = {"p50": None, "p99": None}
            theirs = {"count": 20.0, "mean": factor * server_ms} | unknown
            ttft = {"server": theirs, "ours": {"count": 20, "mean": factor * ttft_ms} | unknown}
            reported = server(0) | {"ttft_ms": ttft}
            path = Path(folder) / f"{number}.json"
            path.parent.mkdir(exist_ok=True)
            saved(path, ttft=factor * ttft_ms, server=reported)
        return folder

    first, second, *_ = (
        text for text, _ in answered(side("a", 20, 10), side("b", 10, 1)).answer.parts
    )
    assert first.startswith('"new" is FASTER: TTFT p50 -50')
    assert second.startswith("also faster: ")
    assert "Server: TTFT mean -90" in second


def test_anything_worse_is_red() -> None:
    found = answered(starts(Path("a"), 10.0, 10.1, 9.9), starts(Path("b"), 20.0, 20.2, 19.9))
    assert found.word is Word.SLOWER
    assert found.answer.parts[0][0].startswith('"new" is SLOWER: TTFT p50 +100.')
    assert found.answer.parts[0][1] is Colour.RED


def test_interval_near_0_is_the_same() -> None:
    many = FEW.replace(num_prompts=200)
    one, other = (2000.0, 2000.1, 2000.2), (2000.05, 2000.15, 2000.25)
    found = answered(
        starts(Path("a"), *one, settings=many), starts(Path("b"), *other, settings=many)
    )
    assert found.word is Word.SAME
    assert found.answer.parts[0][0] == '"new" is THE SAME: TTFT, TPOT, ICL, E2EL within 0.1%'
    assert ("the same: throughput within 0.6%", Colour.NONE) in found.answer.parts


def test_one_run_of_each_decides_tpot_in_these_runs_alone() -> None:
    found = answered(recorded(Path("a")), recorded(Path("b"), factor=2.0, seed=1))
    assert found.word is Word.SLOWER
    assert found.answer.parts[0][0].startswith(
        '"new" is slower in these two runs: TPOT p50 +90.3% ('
    )
    assert found.answer.parts[0][1] is Colour.YELLOW
    (perhaps,) = (text for text, _ in found.answer.parts if text.startswith("perhaps "))
    assert perhaps.startswith("perhaps slower: TTFT p50 +90.3% (")
    assert ("noise between restarts unknown", Colour.YELLOW) in found.answer.parts
    assert found.answer.next_step.startswith(
        "before you draw a conclusion, measure 3 server starts of each, in turn, "
    )


def test_undecided_names_the_median_and_no_figure_of_too_few_requests() -> None:
    found = answered(starts(Path("a"), 20.0, 20.2, 19.9), starts(Path("b"), 20.0, 20.0, 21.0))
    first, unclear, few, *_ = (text for text, _ in found.answer.parts)
    assert first == 'UNDECIDED: no significant difference between "base" and "new"'
    assert unclear.startswith("undecided: req/s -0.1% (-5.6 to +5.8), TTFT p50 +1.5% (")
    assert "p99" not in unclear
    assert few == "too few requests for p90 and p99 of TTFT, TPOT, ICL, E2EL"


def test_runs_that_are_suspect_are_repeated_before_anything_is_switched() -> None:
    late = [
        {
            "name": "requests sent late",
            "value": "5 ms",
            "limit": "1 ms",
            "ok": False,
            "counts": True,
            "group": "B",
            "advice": "none",
        }
    ]
    base = starts(Path("a"), 20.0, 20.2, 19.9)
    found = answered(base, starts(Path("b"), 10.0, 10.1, 9.9, verdict="SUSPECT", checks=late))
    assert found.word is Word.FASTER
    assert found.answer.next_step.startswith('repeat on an idle machine; then switch to "new" ')


def test_results_alone_decide_nothing() -> None:
    found = answered(saved(Path("a")), saved(Path("b"), ttft=25.0, simulated=True))
    assert found.word is Word.UNDECIDED
    assert [text for text, _ in found.answer.parts] == [
        'UNDECIDED: no significant difference between "base" and "new"',
        "undecided: req/s -1.3%, TTFT p50 +25.0%, TPOT p50 +25.0%, ICL p50 +25.0%, E2EL p50 +25.0%",
        "too few requests for p90 and p99 of TTFT, TPOT, ICL, E2EL",
        NO_INTERVALS,
        "all VALID",
        "SIMULATED, not a real server",
    ]


def test_more_errors_come_first_and_latencies_are_not_compared() -> None:
    other = FEW.replace(request_rate=40.0)
    found = answered(
        saved(Path("a"), verdict="SUSPECT"),
        saved(Path("b"), settings=other, error_rate=0.5, partial="x"),
        anyway=True,
    )
    parts = dict(found.answer.parts)
    assert found.word is Word.MORE_ERRORS
    assert found.answer.parts[0][0] == '"new" has MORE ERRORS: +50.00pp (from 0.00% to 50.00%)'
    assert "TTFT" not in found.answer.text
    assert parts["error rates differ, so the latencies cover different requests"] is Colour.RED
    assert parts["different workloads"] is Colour.YELLOW
    assert parts['"base" SUSPECT, "new" VALID and partial'] is Colour.RED


def test_nothing_is_an_improvement_on_a_run_without_success() -> None:
    found = answered(unanswered(Path("a")), saved(Path("b"), ttft=10.0))
    assert found.word is Word.UNDECIDED
    assert found.answer.parts[0][0] == 'UNDECIDED: no request succeeded in a run of "base"'


def test_run_without_success_has_more_errors() -> None:
    found = answered(saved(Path("a"), ttft=10.0), unanswered(Path("b")))
    assert found.answer.parts[0][0] == '"new" has MORE ERRORS: +100.00pp (from 0.00% to 100.00%)'
    assert [text for text, _ in found.answer.parts[1:]] == ["all VALID"]


def test_reason_stands_at_its_side() -> None:
    checks = [
        {
            "name": name,
            "value": "5 ms",
            "limit": "1 ms",
            "ok": False,
            "counts": True,
            "group": "sending",
            "advice": "none",
        }
        for name in ("lag p99", "loop stalls", "requests sent late")
    ]
    found = answered(
        saved(Path("a"), verdict="SUSPECT", checks=checks), saved(Path("b"), ttft=25.0)
    )
    said = '"base" SUSPECT, "new" VALID: lag p99, loop stalls and 1 more reason below'
    assert said in dict(found.answer.parts)


def test_an_invalid_side_leaves_all_undecided() -> None:
    base = starts(Path("a"), 20.0, 20.2, 19.9)
    found = answered(base, starts(Path("b"), 10.0, 10.1, 9.9, verdict="INVALID"))
    assert found.word is Word.UNDECIDED
    assert found.answer.parts[0][0] == 'UNDECIDED: "new" is INVALID'
    assert any(
        text.startswith("perhaps faster: TTFT p50 -50.1% (") for text, _ in found.answer.parts
    )


def test_next_step_follows_from_what_is_sure() -> None:
    fast, slow = (10.0, 10.1, 9.9), (20.0, 20.2, 19.9)
    near = (20.0, 20.0, 21.0)
    told = [
        answered(
            starts(Path(f"a{number}"), *slow), starts(Path(f"b{number}"), *other)
        ).answer.next_step
        for number, other in enumerate((fast, (40.0, 40.4, 39.8), near))
    ]
    assert told == [
        'switch to "new" for this load; compare your other loads as well',
        'stay with "base"; look for the cause in what is not recorded',
        "measure 12 server starts of each, with more requests in each run, which halves the "
        "intervals; until then, do not draw a conclusion",
    ]


def test_next_step_after_runs_that_cannot_be_compared_mends_them_first() -> None:
    good, other = saved(Path("a.json")), saved(Path("c.json"), settings=FEW.replace(seed=9))
    invalid = saved(Path("i.json"), ttft=21.0, verdict="INVALID")
    assert answered(good, invalid).answer.next_step == 'measure "new" again, to the end'
    failing = saved(Path("f.json"), ttft=22.0, error_rate=0.5)
    told = answered(good, failing).answer.next_step
    assert told == 'see why requests of "new" failed: `loadgen report f.json`'
    assert answered(good, other).answer.next_step.startswith(
        "before you draw a conclusion, measure 3 server starts "
    )
    load = saved(Path("l.json"), ttft=23.0, settings=FEW.replace(request_rate=40.0))
    told = answered(good, load, anyway=True).answer.next_step
    assert told.startswith("measure both with one load: ")

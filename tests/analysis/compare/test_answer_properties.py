"""What holds in all comparisons: no row contradicts the answer, and no gate contradicts it.

`make test` draws 500 comparisons, `make test-all` 5,000.
"""

import re

import pytest

from loadgen.analysis.compare.answer import Word, change_of
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.judged_comparison import is_exact, judge, parse
from loadgen.analysis.compare.metrics import ERROR_RATE
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.texts import HERE, MARKS, SIGNIFICANT, SURE
from tests.helpers.random_comparisons import comparison

PART = 500
IMPROVEMENTS = ("FASTER", "faster", "FEWER ERRORS", "better")


Drawn = list[tuple[Comparison, CandidateRows]]


@pytest.fixture(
    scope="module",
    params=[0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 10))],
)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    each = map(comparison, range(request.param * PART, (request.param + 1) * PART))
    return [(one, one.candidates[0]) for one in each]


def significant(candidate: CandidateRows) -> list[Row]:
    return [
        row
        for row in candidate.rows
        if row.conclusion in SIGNIFICANT and row.is_worse is not None and row.metric.latency
    ]


def test_comparisons_are_of_all_kinds(drawn: Drawn) -> None:
    """Else the properties would hold of nothing."""
    told = [(change_of(*each), each[1]) for each in drawn]
    assert {given.word for given, _ in told} == set(Word)
    rows = [row for _, candidate in told for row in candidate.rows]
    assert {row.conclusion for row in rows} == set(Conclusion)
    assert sum(bool(candidate.unanswered) for _, candidate in told) > 20


def test_each_significant_latency_is_named_with_its_direction(drawn: Drawn) -> None:
    for given, candidate in drawn:
        found = change_of(given, candidate)
        rows = significant(candidate)
        for row in [row for row in rows if row.is_worse or not candidate.unanswered]:
            alike = [
                quoted
                for quoted in found.quoted
                if quoted.metric.latency == row.metric.latency
                and quoted.is_worse is row.is_worse
                and quoted.conclusion in SIGNIFICANT
            ]
            sign = "+" if (row.change or 0.0) > 0 else "-"
            assert any(f"{each.metric.title} {sign}" in found.answer.text for each in alike), (
                found.answer.text
            )
            if row.conclusion in SURE:
                assert any(each.conclusion in SURE for each in alike), found.answer.text


def test_no_row_contradicts_the_word(drawn: Drawn) -> None:
    for given, candidate in drawn:
        found = change_of(given, candidate)
        rows = [row for row in candidate.rows if row.metric.name != ERROR_RATE]
        sure = {row.conclusion for row in rows if row.conclusion in SURE}
        here = {row.conclusion for row in rows if row.conclusion in HERE}
        said = {
            frozenset(): None,
            frozenset({Conclusion.WORSE}): Word.SLOWER,
            frozenset({Conclusion.BETTER}): Word.FASTER,
        }.get(frozenset(sure), Word.MIXED)
        if said is not None:
            assert f'"new" is {said}: ' in found.answer.text
        else:
            assert not any(
                f"is {word}" in found.answer.text for word in ("SLOWER", "FASTER", "MIXED")
            )
        if here and not sure:
            assert "in these two runs: " in found.answer.text
        if found.word is Word.SAME:
            assert not significant(candidate)
            assert not given.has_unusable_runs
        if found.word is Word.UNDECIDED:
            assert not sure | here


def test_no_improvement_is_stated_beside_a_run_without_success(drawn: Drawn) -> None:
    for given, candidate in drawn:
        if candidate.unanswered:
            found = change_of(given, candidate)
            assert not any(word in found.answer.text for word in IMPROVEMENTS), found.answer.text
            assert found.word is not Word.SAME
            assert not any(row.conclusion in (*SURE, *HERE) for row in candidate.rows)


def test_figures_have_the_marks_of_their_rows(drawn: Drawn) -> None:
    for given, candidate in drawn:
        found = change_of(given, candidate)
        for row in found.quoted:
            starts = [run for side in given.sides for run in side.starts]
            marks = {mark for run in starts for mark in run.marks(row.metric, run.meaning)}
            figure = re.search(rf"(?<!Server: ){row.metric.title} (\S+)", found.answer.text)
            assert figure is not None, found.answer.text
            assert marks <= set(figure[1]), found.answer.text
            assert all(f"{mark} {MARKS[mark]}" in found.answer.text for mark in marks)


def test_gates_agree_with_the_words(drawn: Drawn) -> None:
    for given, candidate in drawn:
        found = change_of(given, candidate)
        for row in candidate.rows:
            if row.is_worse is None or row.change is None:
                continue
            sign, unit = (
                "<" if row.metric.more_is_better else ">",
                "pp" if row.metric.is_share else "%",
            )
            (judged,) = judge(given, parse([f"{row.metric.name}{sign}+0{unit}"]))
            if given.has_unusable_runs:
                assert judged.failed is None
            elif row.conclusion in (Conclusion.WORSE,):
                assert judged.failed is True
            elif row.conclusion in (Conclusion.BETTER,):
                assert not judged.failed
            elif row.interval is None or not row.interval.basis.is_of_starts:
                is_undecided = judged.failed is None
                assert is_undecided or is_exact(row) or row.why_no_interval.startswith("no var")
            if judged.failed and row.metric.latency:
                assert any(
                    quoted.metric.latency == row.metric.latency and quoted.is_worse
                    for quoted in found.quoted
                ), found.answer.text

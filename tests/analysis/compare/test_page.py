"""The page of a comparison: the answer, the chart, telling rows before folded ones."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.page import page
from loadgen.analysis.compare.side import Side
from loadgen.document import Block, Drawing, Heading, Note, Paragraph, Table, page_writer
from loadgen.document.charts.chart import Chart, Dots, Whiskers
from loadgen.document.charts.scale import Names
from tests.helpers.compared_runs import recorded, saved, starts
from tests.helpers.run_page_parts import words

BASE, NEW, NEAR = (20.0, 20.2, 19.9), (10.0, 10.1, 9.9), (20.0, 20.0, 21.0)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compared(*paths: str) -> Comparison:
    return compare(
        [Side.read(name, path) for name, path in zip(("base", "new", "near"), paths, strict=False)]
    )


def of_starts() -> Comparison:
    return compared(starts(Path("base"), *BASE), starts(Path("new"), *NEW))


def chart_of(blocks: Iterable[Block]) -> Chart:
    (chart,) = (block.chart for block in blocks if isinstance(block, Drawing))
    return chart


def names_of(table: Table) -> list[str]:
    return [words(row[0][0]) for row in table.rows]


def test_the_title_says_what_was_compared_and_the_chart_comes_before_the_table() -> None:
    document = page(of_starts())
    assert document.title == 'Comparison of "new" with "base"'
    assert document.about.startswith("Load of each run: 20 requests, 10 tokens in")
    (found,) = document.answers
    assert found.text.startswith(
        '"new" is FASTER: TTFT p50 -50.1% (-51.2 to -48.9) | also faster: '
    )
    assert found.kind == "tip"
    assert found.text.endswith(
        " | undecided: req/s +2.8% (-2.9 to +8.8) | 95% intervals from 3 runs of each | all VALID"
    )
    assert found.next_step.startswith('switch to "new" for this load')
    drawing, table, *_ = document.blocks
    assert isinstance(drawing, Drawing)
    assert isinstance(table, Table)


def test_rows_that_tell_nothing_are_folded() -> None:
    blocks = page(of_starts()).blocks
    table = next(block for block in blocks if isinstance(block, Table))
    folded, intervals = (block for block in blocks if isinstance(block, Note))
    assert folded.folded
    assert folded.title == "1 further row without a significant difference or an interval"
    (others,) = folded.blocks
    assert isinstance(others, Table)
    assert names_of(others) == ["Error rate"]
    assert names_of(table)[:3] == ["req/s", "TTFT mean", "TTFT p50"]
    assert (intervals.folded, intervals.title) == (True, "How the intervals were made")


def test_legend_of_the_words_stands_at_the_table() -> None:
    blocks = page(of_starts()).blocks
    place = next(number for number, block in enumerate(blocks) if isinstance(block, Table))
    _, better, same = blocks[place + 1 : place + 4]
    assert isinstance(better, Paragraph)
    assert isinstance(same, Paragraph)
    assert words(better.text).startswith("better: at 95%, corrected for all 17 rows")
    assert words(same.text) == "undecided: the interval contains 0."


def test_forest_plot_has_a_whisker_for_each_row_with_an_interval() -> None:
    chart = chart_of(page(of_starts()).all_blocks)
    (panel,) = chart.panels
    assert isinstance(panel.scale, Names)
    assert panel.scale.names[:2] == ("req/s", "TTFT mean")
    better, plain = (mark for mark in panel.marks if isinstance(mark, Whiskers))
    assert (better.name, better.look, better.across) == ("better", "gain", True)
    assert better.values[0] == pytest.approx(-50.1, abs=0.1)
    assert better.lows[0] < better.values[0] < better.highs[0] < 0
    assert better.labels[0] == "-50.1%"
    assert (plain.name, list(plain.at), list(plain.labels)) == (
        "no significant difference",
        [0.0],
        [""],
    )


def test_change_without_an_interval_is_an_open_dot() -> None:
    chart = chart_of(page(compared(saved(Path("a")), saved(Path("b"), ttft=25.0))).all_blocks)
    (dots,) = (mark for mark in chart.panels[0].marks if isinstance(mark, Dots))
    assert (dots.name, dots.look) == ("no interval", "open")
    assert dots.labels[1] == "+25.0%"
    assert dots.labels[2] == "+25.0%*"


@pytest.mark.integration
def test_wide_interval_does_not_squash_the_changes() -> None:
    chart = chart_of(
        page(compared(recorded(Path("a")), recorded(Path("b"), factor=2.0, seed=1))).all_blocks
    )
    assert chart.scale.share(0.0) < 0.35
    assert 0.3 < chart.scale.share(90.0) < 0.7


def test_each_of_several_candidates_has_its_answer_and_chart() -> None:
    document = page(
        compared(
            starts(Path("base"), *BASE), starts(Path("new"), *NEW), starts(Path("near"), *NEAR)
        )
    )
    assert document.title == 'Comparison of "new", "near" with "base"'
    headings = [block.text for block in document.blocks if isinstance(block, Heading)]
    assert headings == [
        'Comparison of "new" with "base"',
        'Comparison of "near" with "base"',
        "What was compared",
    ]
    new, near = (each.text for each in document.answers)
    assert new.startswith('"new" is FASTER: TTFT p50 -50.1%')
    assert near.startswith('UNDECIDED: no significant difference between "base" and "near" | ')
    assert [block.name for block in document.all_blocks if isinstance(block, Drawing)] == [
        "forest-1",
        "forest-2",
    ]


def test_page_for_github_has_no_chart() -> None:
    assert ".svg" not in page_writer.github(page(of_starts()))


def test_few_differences_of_the_environment_stand_in_the_first_line() -> None:
    one = saved(Path("a.json"), engine={"name": "vllm", "version": "0.11.0"})
    other = saved(Path("b.json"), ttft=21, engine={"name": "vllm", "version": "0.12.0"})
    about = page(compared(one, other)).about
    assert ". What differs: engine.version: 0.11.0 (base), 0.12.0 (new)" in about

"""Cells: how figures are scored, what counts as said, and which round counts."""

from pathlib import Path

import msgspec
import orjson
import pytest

from loadgen.lab.judge import truth
from loadgen.lab.judge.case import Load
from loadgen.lab.judge.cases import CASES
from loadgen.lab.judge.cell import (
    Judgement,
    Round,
    Score,
    failure,
    is_wrong_in_time,
    judgement,
    middle,
    remarks,
    score,
    unasked,
)
from loadgen.lab.judge.tool import Printed, Tool
from loadgen.lab.judge.truth import Range

MS = 1_000_000
TOOL = Tool("t", ["t"], [], {}, machine="CPU")


def log(folder: Path, *lines: dict[str, object]) -> Path:
    path = folder / "server.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def request(number: int, at_ms: float, *, ok: bool = True, tokens: int = 2) -> dict[str, object]:
    at_ns = int(at_ms * MS)
    return {
        "t_ns": at_ns,
        "request": number,
        "arrival_ns": at_ns,
        "prompt": f"p{number}",
        "prompt_tokens": 7,
        "asked_tokens": 2,
        "tokens": tokens,
        "unseen": 0,
        "ok": ok,
        "cheats": False,
    }


def write(number: int, at_ms: float, tokens: int) -> dict[str, object]:
    return {"t_ns": int(at_ms * MS), "answer": number, "tokens": tokens, "bytes": ""}


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Range | None]:
    """Two answers of two tokens, after 50 and 70 ms, with gaps of 10 and 30; and a failure."""
    path = log(
        tmp_path,
        request(0, 1000),
        write(0, 1050, 1),
        write(0, 1060, 1),
        request(1, 2000),
        write(1, 2070, 1),
        write(1, 2100, 1),
        request(2, 3000, ok=False, tokens=0),
        write(2, 3800, 0),
    )
    return truth.true_figures(truth.read(path))


def test_latencies_are_of_good_answers_alone(figures: dict[str, Range | None]) -> None:
    assert figures["ttft_mean_ms"] == Range(60, 60)
    assert figures["tpot_mean_ms"] == Range(20, 20)
    assert figures["e2el_mean_ms"] == Range(80, 80)
    assert (figures["completed"], figures["failed"]) == (Range(2, 2), Range(1, 1))
    assert figures["input_tokens"] == Range(14, 14)
    assert figures["request_rate"] == Range.of(2 / 2.8)


def test_a_percentile_lies_between_the_two_conventions(figures: dict[str, Range | None]) -> None:
    assert figures["ttft_p50_ms"] == Range(50, 60)
    assert figures["ttft_p99_ms"] == Range(pytest.approx(69.8), 70)


def test_an_answer_that_was_not_all_written_failed(tmp_path: Path) -> None:
    path = log(tmp_path, request(0, 1000), write(0, 1050, 1))
    figures = truth.true_figures(truth.read(path))
    assert (figures["failed"], figures["ttft_mean_ms"]) == (Range(1, 1), None)


def test_a_request_may_have_come_since_the_server_was_busy(tmp_path: Path) -> None:
    path = log(tmp_path, request(0, 1000), request(1, 1000.6), write(0, 1001, 2), write(1, 1050, 2))
    assert [served.early_ms for served in truth.read(path)] == pytest.approx([0, 0.6])


def test_what_was_sent_is_compared_with_what_was_asked(tmp_path: Path) -> None:
    lines = [request(0, 1000), request(1, 1100), request(2, 1200)]
    sent = truth.sent_figures(truth.read(log(tmp_path, *lines)))
    assert (sent["sent"], sent["sent_rate"], sent["sent_distinct"]) == (3, pytest.approx(10), 1)


def test_the_rate_of_poisson_arrivals_varies() -> None:
    load = Load(count=36, rate=20)
    assert truth.asked_figures(load)["sent_rate"] == Range(20, 20)
    assert truth.asked_figures(load, is_poisson=True)["sent_rate"] == Range(10, 30)


@pytest.mark.parametrize(
    ("figure", "printed", "true", "right"),
    [
        ("output_tokens", 200, Range(200, 200), True),
        ("output_tokens", 201, Range(200, 200), False),
        ("ttft_mean_ms", 55, Range(50, 50), True),
        ("ttft_mean_ms", 56, Range(50, 50), False),
        ("tpot_mean_ms", 11, Range(10, 10), True),
        ("tpot_mean_ms", 12, Range(10, 10), False),
        ("ttft_p99_ms", 65, Range(60, 70), True),
        ("ttft_mean_ms", None, Range(50, 50), None),
        ("tpot_mean_ms", 0, None, False),
        ("tpot_mean_ms", None, None, True),
    ],
)
def test_a_figure_is_right_within_its_tolerance(
    figure: str, printed: float | None, true: Range | None, right: bool | None
) -> None:
    assert score(figure, printed, true).right is right


def test_an_error_is_relative_to_the_nearest_truth() -> None:
    assert score("ttft_p99_ms", 77, Range(60, 70)).error == pytest.approx(0.1)


RIGHT, WRONG = Score("completed", 1, 1, 1, 0.0, True), Score("completed", 2, 1, 1, 1.0, False)
NOTHING = Score("completed", None, 1, 1, None, None)
AGREED = score("tpot_mean_ms", None, None)  # there is none, and none was printed
SOME, NONE = Printed({"completed": 2}), Printed()


@pytest.mark.parametrize(
    ("printed", "scored", "said", "expected"),
    [
        (SOME, [RIGHT, WRONG], False, Judgement.WRONG_SILENT),
        (SOME, [RIGHT, WRONG], True, Judgement.WRONG_SAID),
        (SOME, [RIGHT, NOTHING], False, Judgement.RIGHT),
        (SOME, [NOTHING], True, Judgement.NOT_PRINTED),
        (SOME, [AGREED], False, Judgement.NOT_PRINTED),
        (NONE, [NOTHING], True, Judgement.NO_REPORT),
    ],
)
def test_a_cell_is_as_bad_as_its_worst_figure(
    printed: Printed, scored: list[Score], said: bool, expected: Judgement
) -> None:
    assert judgement(printed, scored, said=said, requests=10) is expected


def test_a_tool_that_sent_nothing_has_no_report() -> None:
    nothing = score("completed", 0, Range(0, 0))
    assert judgement(SOME, [nothing], said=False, requests=0) is Judgement.NO_REPORT
    assert judgement(NONE, [AGREED], said=False, requests=0) is Judgement.NO_REPORT


def test_a_cell_that_cannot_be_asked_has_its_reason() -> None:
    case = CASES["pause"]
    assert unasked(case, TOOL) == "its file has no words for open"
    assert unasked(case, msgspec.structs.replace(TOOL, open=["-r"])) == ""


def test_a_tool_that_failed_has_its_first_error(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    output.write_text("starting\nValueError: no such flag\nerror: also this\n")
    ended = Round("t", 2, 1.0, NONE, (), 0)
    assert failure(output, ended) == (
        f"exit code 2, no request came to the server; {output}: ValueError: no such flag"
    )


def test_what_is_said_of_every_server_or_of_the_machine_is_not_said_of_this_one() -> None:
    says = ["late 5 ms", "CPU busy", "more events than tokens"]
    counts, time = CASES["no-usage"], CASES["pause"]
    assert remarks(counts, TOOL, says, ["late 7 ms"]) == ("more events than tokens",)
    assert remarks(time, TOOL, says, ["late 7 ms"]) == ("CPU busy", "more events than tokens")


def test_of_three_rounds_the_middle_error_counts() -> None:
    rounds = [(score("ttft_mean_ms", printed, Range(50, 50)),) for printed in (50.5, 90, 51.5)]
    assert middle(rounds)[0].printed == 51.5
    assert middle([(NOTHING,), (RIGHT,), (WRONG,)])[0] == WRONG


def test_a_count_is_wrong_in_any_round() -> None:
    late = score("ttft_mean_ms", 90, Range(50, 50))
    assert is_wrong_in_time([RIGHT, late])
    assert not is_wrong_in_time([WRONG, late])
    assert not is_wrong_in_time([RIGHT])

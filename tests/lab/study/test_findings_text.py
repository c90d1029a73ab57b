"""The findings of a study as lines of text."""

import re
from pathlib import Path

import pytest

from loadgen.cli import exit_codes
from loadgen.lab.commands import study_runs
from loadgen.lab.commands.study_runs import StudyLines, study_time_left
from loadgen.lab.study.execute.trial import Answers, Failure, TrialRequest
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.plan import CONFIRMATION
from loadgen.lab.study.plan.planner import Planner, plan
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.report.answer import answer
from loadgen.util.terminal_text import Screen
from tests.helpers.console_lines import cells
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, trial, walked

QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
TWICE = {"decision": {"repeats": {"least": 2, "most": 2}}}


def gained(request: TrialRequest) -> Came:
    """A quarter more with fp8, the same in every block."""
    return (1250.0 if "fp8" in request.arm else 1000.0) * (1 + 0.001 * request.block)


def limited(request: TrialRequest) -> Came:
    """Beyond the limit, fp8 less so."""
    value = 550.0 if "fp8" in request.arm else 600.0
    return {"loadgen": {"slo": [{"limit": "ttft_p99<500ms", "value": value, "met": False}]}}


def test_an_arm_is_told_with_its_gain_its_value_and_what_decided() -> None:
    found = walked(study(QUANTIZED, **TWICE), gained)
    lines = findings_text.as_text(found, Screen(columns=120)).splitlines()
    name, change, row = next(cells(line) for line in lines if line.startswith("  fp8 "))
    assert (name, change) == ("fp8", "serve Qwen/Qwen3-8B-FP8")
    assert row.startswith("adopted, +25.0% (+24.")
    assert row.endswith("%), 5,002.5 tok/s in 2 starts")  # four fit into the box
    assert answer(found).text.startswith("WINNER: quantization/fp8 +25.0%")


def test_every_workload_that_an_arm_ran_is_told_with_its_difference() -> None:
    found = walked(study(QUANTIZED | {"workloads": ["long"]}, **TWICE), gained)
    lines = findings_text.as_text(found, Screen(columns=120)).splitlines()
    after = lines.index(next(line for line in lines if line.startswith("  fp8 "))) + 1
    workload, row = cells(lines[after])
    assert workload == "on long"
    assert row == "+25.0% (+25.0% to +25.0%), 5,002.5 tok/s in 2 starts"


def test_the_opening_has_the_metric_in_words_and_the_load() -> None:
    lines = findings_text.as_text(walked(study(QUANTIZED), gained)).splitlines()
    opening = " ".join(line.strip() for line in lines[: lines.index("")])
    assert ": input and output tokens/s of all servers that fit on the machine; more is" in opening
    assert re.search(r" Load of short: \d+ requests, \d+ tokens in and \d+ out, \S", opening)


def test_noise_is_told_before_a_stage() -> None:
    found = walked(
        study(QUANTIZED, **TWICE), lambda request: 1000.0 * (1 + 0.01 * request.block), 3
    )
    text = findings_text.as_text(found)
    # Of ln 1, ln 1.01, ln 1.02.
    assert "noise 0.99%, the standard deviation of one start (2 degrees of freedom)" in text
    assert "effects of " in text


def test_where_less_is_better_a_gain_is_told_as_a_value_that_falls() -> None:
    def truth(request: TrialRequest) -> Came:
        return {"median_e2el_ms": 4000.0 if "fp8" in request.arm else 5000.0}

    objective = {"metric": "e2el_p50", "workload": "short"}
    found = walked(study(QUANTIZED, objective=objective, **TWICE), truth)
    lines = findings_text.as_text(found, Screen(columns=120)).splitlines()
    *_, row = next(cells(line) for line in lines if line.startswith("  fp8 "))
    assert row == "adopted, -20.0% (-20.0% to -20.0%), 4,000.0 ms in 2 starts"


def test_study_without_a_better_arm_says_so() -> None:
    found = walked(study(QUANTIZED, **TWICE), lambda request: 1000.0)
    assert answer(found).text == "NO WINNER: no arm was better than the baseline | study finished"
    assert study_runs.code(found) == exit_codes.DONE


def test_a_winner_that_fails_in_fresh_starts_was_not_confirmed() -> None:
    def came(request: TrialRequest) -> Came:
        fails = request.step == CONFIRMATION and "fp8" in request.arm
        return Failure("oom_load", "no memory", transient=False) if fails else gained(request)

    said = answer(walked(study(QUANTIZED, **TWICE), came))
    assert said.text == (
        "NO WINNER: gain of quantization/fp8 (failed, oom_load: no memory) not confirmed in fresh "
        "starts | study finished"
    )
    assert said.next_step == "keep the baseline"


def test_infeasible_study_names_the_closest_arm_and_exit_code() -> None:
    objective = {"workload": "short", "slo": "ttft_p99<500ms"}
    found = walked(study(QUANTIZED, objective=objective, **TWICE), limited)
    text = findings_text.as_text(found)
    assert (
        "\nNO WINNER: no arm met the limits of the study; the closest is quantization/fp8 "
        "(ttft_p99<500ms is 550 ms) | study finished\n" in text
    )
    assert "no arm was better" not in text
    assert study_runs.code(found) == exit_codes.NOTHING_FEASIBLE


def test_a_baseline_that_fails_is_an_engine_that_failed() -> None:
    found = walked(
        study(QUANTIZED, **TWICE), lambda request: Failure("oom_load", "no memory", transient=False)
    )
    said = answer(found)
    assert said.text == "NOT FINISHED: noise: baseline fails, oom_load: no memory"
    assert said.next_step == ("correct what failed, and run the study in another store (`--store`)")
    assert study_runs.code(found) == exit_codes.INTERNAL


def test_right_answers_are_exported() -> None:
    made = study(QUANTIZED, **TWICE)
    walk = Walk(made, Planner(made))
    assert walk.request is not None
    walk.add(trial(walk.request, 1000.0, answers=Answers("q", (True, False))))
    exported = findings_text.as_json(
        walk.found(), {"study": {}, "source": "run", "host": None, "builds": {}, "data": {}}
    )
    assert exported["steps"][0]["arms"][0]["trials"][0]["answered"]["right"] == "10"


def test_lines_name_every_start_what_came_of_it_and_what_is_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = study(QUANTIZED, **TWICE)
    walk, view = Walk(made, Planner(made)), StudyLines(plan(made))
    while (request := walk.request) is not None:
        view.begin(walk, request, tmp_path)
        over = trial(request, gained(request), walk.planned.workloads)
        walk.add(over)
        view.end(walk, over)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "loadgen: noise: baseline"
    assert sum("is started" in line for line in lines) == 3 + 4 + 4
    assert any(
        line.startswith("loadgen:     short: 1000 of 1000 requests, 1,250.0 tok/s in all")
        for line in lines
    )
    assert any("fp8" in line and "adopted, +25.0%" in line for line in lines)


def test_time_left_is_estimated_from_past_starts() -> None:
    made = study(QUANTIZED, **TWICE)
    walk, expected = Walk(made, Planner(made)), plan(made)
    # No winner is expected: the baseline alone is confirmed.
    assert study_time_left(walk, expected) == "9 starts left"
    assert walk.request is not None
    walk.add(trial(walk.request, 1000.0))
    # a minute each, and 20 s before each
    assert (
        study_time_left(walk, expected)
        == "about 8 min left, and up to 2.7 min of waits for a quiet machine"
    )


def test_time_left_of_a_study_that_never_waits_has_no_waits() -> None:
    made = study(QUANTIZED, budget={"quiet_wait": 0}, **TWICE)
    walk, expected = Walk(made, Planner(made)), plan(made)
    assert walk.request is not None
    walk.add(trial(walk.request, 1000.0))
    assert study_time_left(walk, expected) == "about 8 min left"

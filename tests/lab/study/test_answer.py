"""The answer of a study: title, badge and last line say the same, doubts included."""

from pathlib import Path

from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.report.answer import answer
from tests.helpers.study_reports import STAGES, found, truth, written
from tests.helpers.study_walks import Came

SHARE = "CPU taken from the server: the client used 99.9% of the server's CPU time"
LATE = "late sends: 20.0% of the requests late, limit 1% later than 5.000 ms"


def suspect(request: TrialRequest) -> Came:
    """Gains as in the small study, from runs that are all SUSPECT."""
    reasons = [f"{SHARE}, limit 50%", *([LATE] if request.block else [])]
    loadgen = {"verdict": "SUSPECT", "reasons": reasons}
    return {"total": truth()(request), "loadgen": loadgen}


def page(findings: Findings, tmp_path: Path) -> str:
    return written(findings, tmp_path, {"source": "run"})["small.md"]


def last_lines(findings: Findings) -> tuple[str, str]:
    """The answer, and the next step."""
    *_, last, following = findings_text.as_text(findings)
    return last, following


def test_a_gain_without_doubts_is_confirmed(tmp_path: Path) -> None:
    assert answer(found()).text == "gain confirmed"
    text = page(found(), tmp_path)
    following = "adopt quantization/fp8: serve Qwen/Qwen3-8B-FP8"
    assert text.startswith(
        f'# small: gain confirmed\n\n!!! tip "gain confirmed"\n\n**next:** {following}\n'
    )
    last, next_line = last_lines(found())
    assert last.endswith(": gain confirmed")
    assert next_line == f"next: {following}"


def test_doubts_are_in_the_title_the_badge_and_the_last_line(tmp_path: Path) -> None:
    findings = found(suspect)
    runs = sum(len(trial.runs) for trial in findings.trials)
    headline = f"gain confirmed, but {runs} of {runs} runs are SUSPECT"
    text = page(findings, tmp_path)
    assert text.startswith(f'# small: {headline}\n\n!!! warning "{headline}: {SHARE}"\n')
    last, following = last_lines(findings)
    assert last.endswith(f": {headline}: {SHARE}")
    assert following.startswith("next: adopt quantization/fp8, after a repeat on an idle machine: ")


def test_an_unfinished_study_has_no_doubts_yet(tmp_path: Path) -> None:
    text = page(found(suspect, starts=2), tmp_path)
    assert text.startswith('# small: not finished: not run yet\n\n!!! warning "not finished: ')


def test_no_gain_is_an_answer_too() -> None:
    alike = found(truth({}), stages=STAGES[:1])
    assert answer(alike).text == "no arm was better than the baseline"
    assert last_lines(alike) == (
        "No arm was better than the baseline",
        "next: keep the baseline, or give the study other arms",
    )


def test_the_legend_has_the_sign_of_the_results(tmp_path: Path) -> None:
    def times(request: TrialRequest) -> Came:
        return {"median_e2el_ms": 4000.0 if "fp8" in request.arm else 5000.0}

    objective = {"metric": "e2e_p50", "workload": "short"}
    lower = page(found(times, stages=STAGES[:1], objective=objective), tmp_path)
    assert r"the better arm is first: \< stands between arms that differ" in lower
    assert "the better arm is first: > stands between" in page(found(), tmp_path)

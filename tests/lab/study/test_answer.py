"""The answer of a study: its state first, doubts included, the same in every form."""

from pathlib import Path

from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.report.answer import answer
from tests.helpers.study_reports import STAGES, found, truth, written
from tests.helpers.study_walks import Came

SHARE = "loadgen took CPU time from the server: the client used 99.9% of the server's CPU time"
LATE = "requests sent late: 20.0% of the requests late, limit 1% later than 5.000 ms"


def suspect(request: TrialRequest) -> Came:
    """Gains as in the small study, from runs that are all SUSPECT."""
    reasons = [f"{SHARE}, limit 50%", *([LATE] if request.block else [])]
    loadgen = {"verdict": "SUSPECT", "reasons": reasons}
    return {"total": truth()(request), "loadgen": loadgen}


def page(findings: Findings, tmp_path: Path) -> str:
    return written(findings, tmp_path, {"source": "run"})["small.md"]


def test_a_gain_without_doubts_is_confirmed(tmp_path: Path) -> None:
    said = (
        "WINNER: quantization/fp8 +25.3% (+20.5% to +30.3%) over the baseline, confirmed "
        "in fresh starts | study finished"
    )
    assert answer(found()).text == said
    following = "deploy quantization/fp8: serve Qwen/Qwen3-8B-FP8"
    text = page(found(), tmp_path)
    assert text.startswith(
        '# Study "small": metric total_tps_per_box, workload short, engines vllm, '
    )
    assert f'\n\n!!! tip "{said}"\n\n**next:** {following}\n' in text
    lines = findings_text.as_text(found()).splitlines()
    assert lines[lines.index(said) + 1] == f"next: {following}"
    assert lines[-1] == said


def test_doubts_make_the_answer_suspect_and_are_counted(tmp_path: Path) -> None:
    findings = found(suspect)
    runs = sum(len(trial.runs) for trial in findings.trials)
    said = answer(findings)
    assert said.text.startswith("WINNER: quantization/fp8 +25.")
    check, _, seen = SHARE.partition(": ")
    doubt = f" | study finished | all {runs} runs SUSPECT: {check} ({seen})"
    assert said.text.endswith(doubt)
    assert said.kind == "warning"
    assert said.text in page(findings, tmp_path)
    assert said.next_step.startswith("repeat on an idle machine; then deploy quantization/fp8: ")


def test_an_unfinished_study_has_no_doubts_yet(tmp_path: Path) -> None:
    assert '\n!!! warning "NOT FINISHED: not run yet"\n' in page(found(suspect, starts=2), tmp_path)


def test_no_gain_is_an_answer_too() -> None:
    alike = found(truth({}), stages=STAGES[:1])
    assert answer(alike).text == "NO WINNER: no arm was better than the baseline | study finished"
    assert answer(alike).next_step == "keep the baseline, or give the study other arms"


def test_the_legend_has_the_sign_of_the_results(tmp_path: Path) -> None:
    def times(request: TrialRequest) -> Came:
        return {"median_e2el_ms": 4000.0 if "fp8" in request.arm else 5000.0}

    objective = {"metric": "e2el_p50", "workload": "short"}
    lower = page(found(times, stages=STAGES[:1], objective=objective), tmp_path)
    assert r"the better arm is first: \< stands between arms that differ" in lower
    assert "the better arm is first: > stands between" in page(found(), tmp_path)

"""Studies and audits of a program: what it reads, and errors by the names of arguments."""

from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen.errors import Spelling, spelled
from loadgen.lab.study.execute.store import Store, locked
from tests.helpers import study_reports
from tests.helpers.source import ROOT

PAGE = ROOT / "tests" / "data" / "pages" / "qwen3-14b-h100.md"


def saved(folder: Path) -> loadgen.SavedStudy:
    """A study that is over, in a store."""
    findings = study_reports.found()
    facts: dict[str, Any] = {
        "study": {},
        "source": "run",
        "host": {"name": "a"},
        "builds": {},
        "data": {},
    }
    with locked(folder), Store.create(folder, facts):
        pass
    study_reports.keep(findings, folder)
    return loadgen.SavedStudy(findings, folder)


def test_study_tells_its_winner_and_its_steps(tmp_path: Path) -> None:
    study = saved(tmp_path)
    assert study.open == ""
    assert study.winner is not None
    assert study.winner.verdict == "adopted"
    assert study.steps[-1].step.name == "confirmation"
    answer = f"WINNER: {study.winner.name} +25.3% (+20.5% to +30.3%) over the baseline, "
    assert f"\n{answer}confirmed in fresh starts | study finished\nnext: deploy " in str(study)
    assert repr(study) == f"<loadgen.SavedStudy: small, {len(study.findings.trials)} starts, over>"
    steps = study.data["steps"]
    assert [step["name"] for step in steps] == [each.step.name for each in study.steps]


def test_report_is_written_where_it_is_asked(tmp_path: Path) -> None:
    study = saved(tmp_path / "store")
    files = study.write_report(tmp_path / "page")
    assert tmp_path / "page" / "small.md" in files
    (tmp_path / "file").touch()
    with pytest.raises(loadgen.BadInput) as caught, spelled(Spelling()):
        study.write_report(tmp_path / "file")
    assert caught.value.field == "output"


@pytest.mark.parametrize("argument", ["study", "store", "on_progress", "on_trial"])
def test_argument_of_another_type_is_refused(argument: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"study": tmp_path / "study.yaml", argument: 3}
    with pytest.raises(loadgen.BadInput) as caught:
        loadgen.tune_sync(**arguments)
    assert caught.value.field == argument


def test_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(loadgen.BadInput, match="is not a store of a study"):
        loadgen.load_study(tmp_path)


def test_audit_returns_typed_findings(tmp_path: Path) -> None:
    findings = loadgen.audit(PAGE)
    assert findings
    assert all(
        isinstance(each, loadgen.Finding) and each.place.file == str(PAGE) for each in findings
    )
    assert {each.rule for each in findings} == {each.to_dict()["rule"] for each in findings}
    empty = tmp_path / "page.md"
    empty.write_text("no numbers\n")
    with pytest.raises(loadgen.BadInput, match="no block of results, and no table"):
        loadgen.audit(empty)

"""What tests of imports share: files imported into a store, and what is in it then."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from loadgen.lab.importer.entries import Source
from loadgen.lab.importer.importer import Importer, ImportSummary, store
from loadgen.lab.importer.placement import Arms
from loadgen.lab.study.execute import publications, score
from loadgen.lab.study.execute.findings import ArmResult, Findings
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.study_file import StudyFile
from tests.helpers.source import ROOT

PAGES = ROOT / "tests" / "data" / "pages"
STUDIES = ROOT / "examples" / "studies"


@dataclass(frozen=True)
class Taken:
    """A store after an import.

    Attributes:
        told: What became of each file.
        trials: All that it has, in order.
        findings: What they come to.
        folder: Where it is.
    """

    told: list[ImportSummary]
    trials: list[Trial]
    findings: Findings
    folder: Path

    @property
    def lines(self) -> str:
        """All that was said."""
        return "\n".join(line for each in self.told for line in each.lines)


def take(study: StudyFile, folder: Path, *names: str, as_: str | None = None) -> Taken:
    """Import files, or parts of them, into the store in a folder."""
    arms = Arms(plan(study.study))
    with store(folder, study) as kept:
        importer = Importer(kept, arms, study.study, arms.named(as_) if as_ else None)
        told = [importer.add(Source.read(name)) for name in names]
        trials = list(kept.trials().values())
    return Taken(told, trials, publications.published_findings(study.study, trials), folder)


@cache
def page(name: str) -> Taken:
    """A page of the performance lab, imported into its study."""
    study = study_file.read(STUDIES / f"{name}.yaml")
    with TemporaryDirectory() as folder:
        return take(study, Path(folder), str(PAGES / f"{name}.md"))


def arm(findings: Findings, step: str, name: str) -> ArmResult:
    """An arm of a step."""
    return next(each for each in findings.steps if each.step.name == step).arm(name)


def achieved(findings: Findings, step: str, name: str, workload: str) -> float:
    """What an arm achieved at the objective on a workload, of which it has one run."""
    found = arm(findings, step, name)
    (ran,) = (trial.runs[workload] for trial in found.trials if workload in trial.runs)
    value = score.objective_value(ran, found.planned.spec, findings.study)
    assert value is not None
    return value


def change(value: float, other: float) -> str:
    """A value beside another, as pages print it."""
    return f"{100 * (value / other - 1):+.2f}"

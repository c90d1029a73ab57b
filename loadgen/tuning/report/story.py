"""Story: what a report tells of a study: all that is concluded from its findings, before anything is laid out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from loadgen.tuning.execute.facts import IMPORTED
from loadgen.tuning.execute.findings import Findings, StepFound, Verdict
from loadgen.tuning.execute.trial import Ran
from loadgen.tuning.plan.plan import CONFIRMATION, NOISE
from loadgen.tuning.report.delta import LABELS, Delta
from loadgen.tuning.report.standing import Case, Standing, standings
from loadgen.tuning.spec.objective import METRICS


@dataclass(frozen=True)
class Chapter:
    """A step, and where its arms stand.

    Attributes:
        found: The step.
        arms: The reference first.
        more_is_better: Of the objective.
        workload: That decides.
    """

    found: StepFound
    arms: tuple[Standing, ...]
    more_is_better: bool
    workload: str

    @property
    def name(self) -> str:
        """Of the step."""
        return self.found.step.name

    @property
    def reference(self) -> Standing | None:
        """The arm that the others are held against; None where there is none."""
        return next((arm for arm in self.arms if arm.name == self.found.reference), None)

    @property
    def rivals(self) -> list[Standing]:
        """The others."""
        return [arm for arm in self.arms if arm.name != self.found.reference]

    @cached_property
    def ranked(self) -> list[Standing]:
        """Those that ran and hold what the study demands, the best first."""
        able = [arm for arm in self.arms if arm.found.feasible and self.score(arm) is not None]
        return sorted(able, key=lambda arm: self.score(arm) or 0.0, reverse=self.more_is_better)

    @property
    def adopted(self) -> Standing | None:
        """The arm that went on; None where the reference stayed."""
        won = next((arm for name in self.found.won[:1] for arm in self.arms if arm.name == name), None)
        return won if won is not None and won.found.verdict is Verdict.ADOPTED else None

    @property
    def best(self) -> Standing | None:
        """The arm that stands for the step: the one that went on, else the best of the others, else the first."""
        rivals = self.rivals
        able = [arm for arm in self.ranked if arm.name != self.found.reference]
        return self.adopted or next(iter(able or rivals), None)

    def score(self, arm: Standing) -> float | None:
        """What an arm achieved at the objective."""
        case = arm.cases.get(self.workload)
        return case.achieved if case else None


@dataclass(frozen=True)
class Rung:
    """An adoption on the way from the baseline to the winner.

    Attributes:
        name: STAGE/ARM.
        delta: Beside the arm before it; None where nothing was compared.
    """

    name: str
    delta: Delta | None


@dataclass(frozen=True)
class Lost:
    """Starts of an arm that failed for the same reason, or an arm that was never started for one.

    Attributes:
        step, arm: Which.
        times: Starts.
        kind: Class of the failure.
        cause: The line that says it.
    """

    step: str
    arm: str
    times: int
    kind: str
    cause: str


class Story:
    """What is told.

    Args:
        findings: What the study has found.
        facts: What its store knows beside.

    Attributes:
        label, unit: Of the objective's metric.
        published: Whether all was measured by others, and each arm once.
        chapters: The steps that have begun.
    """

    def __init__(self, findings: Findings, facts: Mapping[str, Any]) -> None:
        self.findings, self.facts, self.study = findings, facts, findings.study
        objective = self.study.objective
        self.label, self.unit = LABELS[objective.metric], METRICS[objective.metric].unit
        self.workload, self.more_is_better = objective.workload, objective.more_is_better
        self.published = published = facts.get("source") == IMPORTED
        self.chapters = tuple(
            Chapter(step, tuple(standings(step, self.study, published=published)), self.more_is_better, self.workload)
            for step in findings.steps
        )

    @property
    def stages(self) -> list[Chapter]:
        """The chapters of stages."""
        return [chapter for chapter in self.chapters if chapter.found.step.kind not in (NOISE, CONFIRMATION)]

    @property
    def confirmation(self) -> Chapter | None:
        """Baseline and winner, measured afresh."""
        last = self.chapters[-1] if self.chapters else None
        return last if last is not None and last.found.step.kind == CONFIRMATION else None

    @property
    def baseline(self) -> Standing | None:
        """Where the baseline stands: in the confirmation, else in the step that came first; None before any."""
        chapter = self.confirmation or next(iter(self.chapters), None)
        return chapter.reference if chapter else None

    @property
    def finalist(self) -> Standing | None:
        """The last arm that was adopted, beside the baseline; None where none was.

        As long as there is no confirmation, the two ran in different steps, and nothing bounds their difference.
        """
        if self.confirmation is not None:
            return next(iter(self.confirmation.rivals), None)
        adopted = next((stage.adopted for stage in reversed(self.stages) if stage.adopted), None)
        if adopted is None or self.baseline is None:
            return None
        beside = {
            name: Delta.of_runs_apart(case.achieved, other, more_is_better=self.more_is_better, single=self.published)
            for name, case in adopted.cases.items()
            if name in self.baseline.cases and (other := self.baseline.cases[name].achieved) and case.achieved
        }
        return replace(adopted, deltas=beside)

    @property
    def winner(self) -> Standing | None:
        """The finalist, unless fresh starts did not show it to be better."""
        return None if self.findings.confirmed is False else self.finalist

    @property
    def workloads(self) -> list[str]:
        """The one that decides, then the others as the study names them."""
        return sorted(self.study.workloads, key=lambda name: name != self.workload)

    @property
    def simulated(self) -> bool:
        """Whether any run was of the simulator."""
        return any(ran.summary["loadgen"].get("simulated") for ran in self.runs)

    @cached_property
    def runs(self) -> list[Ran]:
        """All that was measured."""
        return [ran for trial in self.findings.trials for ran in trial.runs.values()]

    @property
    def closest(self) -> Standing | None:
        """The arm that was nearest to what the study demands; None where none ran."""
        step, found = self.findings.closest or (None, None)
        arms = (arm for chapter in self.chapters if chapter.found is step for arm in chapter.arms)
        return next((arm for arm in arms if arm.found is found), None)

    @property
    def missing(self) -> list[str]:
        """What the study has not come to, a line each."""
        begun = {chapter.name for chapter in self.chapters}
        open_ = [f"{chapter.name}: {chapter.found.open}" for chapter in self.chapters if chapter.found.open]
        ahead = [stage.name for stage in self.study.stages if stage.name not in begun]
        ahead += [CONFIRMATION] if self.confirmation is None else []
        return open_ + [f"{name}: not begun" for name in ahead]

    @property
    def rungs(self) -> list[Rung]:
        """The way from the baseline to the last arm that was adopted."""
        found: list[Rung] = []
        wanted: str | None = None
        for stage in reversed(self.stages):
            adopted, reference = stage.adopted, stage.reference
            if adopted is None or reference is None or wanted not in (None, adopted.found.planned.identity):
                continue
            found.insert(0, Rung(f"{stage.name}/{adopted.name}", adopted.deltas.get(self.workload)))
            wanted = reference.found.planned.identity
        return found

    @property
    def lost(self) -> list[Lost]:
        """What failed, or was left out since something like it had failed."""
        counts: dict[tuple[str, str, str, str], int] = {}
        for chapter in self.chapters:
            for arm in chapter.arms:
                for trial in arm.found.trials:
                    if trial.failure is not None:
                        key = (chapter.name, arm.name, trial.failure.kind, trial.failure.cause)
                        counts[key] = counts.get(key, 0) + 1
                if arm.found.verdict is Verdict.PRUNED:
                    counts[chapter.name, arm.name, str(Verdict.PRUNED), arm.found.why] = 0
        return [Lost(step, arm, times, kind, cause) for (step, arm, kind, cause), times in counts.items()]

    @property
    def speeds(self) -> dict[str, tuple[str, Case]]:
        """Every configuration that ran the deciding workload: its name and the last step's numbers, by identity."""
        found: dict[str, tuple[str, Case]] = {}
        for chapter in self.chapters:
            for arm in chapter.arms:
                if self.workload in arm.cases:
                    planned = arm.found.planned
                    name = found.get(planned.identity, (f"{chapter.name}/{arm.name}",))[0]
                    name = "baseline" if chapter.found.step.kind == NOISE else name
                    found[planned.identity] = name, arm.cases[self.workload]
        return found

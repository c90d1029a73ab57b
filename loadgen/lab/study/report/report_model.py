"""The contents of a report: all conclusions from the findings of a study, before anything is
laid out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from loadgen.lab.study.execute.arm_result import (
    ArmResult,
    Difference,
    Unbounded,
    Verdict,
    WorkloadResult,
)
from loadgen.lab.study.execute.findings import (
    Findings,
    StepResult,
    difference_of,
    with_workload_results,
)
from loadgen.lab.study.execute.trial import WorkloadRun
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE
from loadgen.lab.study.spec.study import LATENCIES, MAX_RATE, METRICS, MetricName
from loadgen.util.number_format import value_range

# Names of the metrics above numbers.
LABELS: dict[MetricName, str] = {
    "total_tps_per_box": "Total TPS",
    "output_tps_per_gpu": "Output TPS per device",
    MAX_RATE: "Max rate under SLO",
    "cost_per_mtok": "Cost",
    **{
        name: f"{'Median' if name.endswith('p50') else 'P99'} {name[:-4].upper()}"
        for name in LATENCIES
    },
}


@dataclass(frozen=True)
class StageSummary:
    """A step and the ranking of its arms.

    Attributes:
        found: The step, with results on each workload.
        more_is_better: Direction of the objective.
        workload: Workload that decides.
    """

    found: StepResult
    more_is_better: bool
    workload: str

    @property
    def name(self) -> str:
        """Name of the step."""
        return self.found.step.name

    @property
    def arms(self) -> tuple[ArmResult, ...]:
        """Results of its arms, the reference first."""
        return self.found.arms

    @property
    def reference(self) -> ArmResult | None:
        """The arm that the others are compared with; None: none."""
        return next((arm for arm in self.arms if arm.name == self.found.reference), None)

    @property
    def rivals(self) -> list[ArmResult]:
        """The other arms."""
        return [arm for arm in self.arms if arm.name != self.found.reference]

    @cached_property
    def ranked(self) -> list[ArmResult]:
        """The arms that ran and met the limits, the best first; of two that are the same, one."""
        different = [arm for arm in self.arms if arm.verdict is not Verdict.SAME_AS]
        feasible = [arm for arm in different if arm.feasible and self.score(arm) is not None]
        return sorted(feasible, key=lambda arm: self.score(arm) or 0.0, reverse=self.more_is_better)

    @property
    def adopted(self) -> ArmResult | None:
        """The arm that went on; None: the reference stayed."""
        if not self.found.won:
            return None
        best = next((arm for arm in self.arms if arm.name == self.found.won[0]), None)
        return (
            best
            if best is not None and best.verdict in (Verdict.ADOPTED, Verdict.AUTHORS_CHOICE)
            else None
        )

    @property
    def best(self) -> ArmResult | None:
        """The arm that represents the step: the adopted one, or else the best rival, or else the
        first rival.
        """
        ranked = [arm for arm in self.ranked if arm.name != self.found.reference]
        return self.adopted or next(iter(ranked or self.rivals), None)

    def bounds(self, arm: ArmResult) -> tuple[float, float]:
        """Return the bounds of an arm's difference from the reference, unbounded where nothing
        was compared.
        """
        result = arm.workloads.get(self.workload)
        if arm.name == self.found.reference:
            return 0.0, 0.0
        if result is None or result.difference is None:
            return -math.inf, math.inf
        low = result.difference.low
        high = result.difference.high
        return -math.inf if low is None else low, math.inf if high is None else high

    def score(self, arm: ArmResult) -> float | None:
        """Return the value of an arm on the deciding workload."""
        result = arm.workloads.get(self.workload)
        return result.achieved if result else None


class ReportModel:
    """The contents of a report.

    Args:
        findings: Findings of the study.
        facts: Facts of its store.

    Attributes:
        facts: Facts of its store.
        study: The study.
        label: Name of the objective's metric.
        unit: Its unit.
        workload: Workload that decides.
        more_is_better: Direction of the metric.
        published: Whether all results were published by others, one run of each arm.
        findings: Findings with the results on each workload.
        steps: Summaries of the steps that have begun.
    """

    def __init__(self, findings: Findings, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.study = findings.study
        objective = self.study.objective
        self.label = LABELS[objective.metric]
        self.unit = METRICS[objective.metric].unit
        self.workload = objective.workload
        self.more_is_better = objective.more_is_better
        self.published = findings.published
        # Why results of different steps have no bounds.
        self._apart = Unbounded.SINGLE_RUNS if self.published else Unbounded.APART
        filled = [
            with_workload_results(step, self.study, published=self.published)
            for step in findings.steps
        ]
        self.findings = replace(findings, steps=tuple(filled))
        self.steps = [StageSummary(step, self.more_is_better, self.workload) for step in filled]

    @property
    def sign(self) -> str:
        """The sign between a better arm and a worse one."""
        return ">" if self.more_is_better else "<"

    @property
    def stages(self) -> list[StageSummary]:
        """The steps without noise and confirmation."""
        return [step for step in self.steps if step.found.step.kind not in (NOISE, CONFIRMATION)]

    @property
    def confirmation(self) -> StageSummary | None:
        """The comparison of baseline and winner in fresh starts; None before it begins."""
        return self.steps[-1] if self.findings.confirmation else None

    @property
    def baseline(self) -> ArmResult | None:
        """The baseline in the confirmation, or else in the first step; None before any step."""
        step = self.confirmation or next(iter(self.steps), None)
        return step.reference if step else None

    @property
    def finalist(self) -> ArmResult | None:
        """The last adopted arm, compared with the baseline; None: no arm was adopted.

        Before the confirmation the two ran in different steps, so their difference has no bounds.
        """
        if self.confirmation is not None:
            return self.findings.finalist
        adopted = next((stage.adopted for stage in reversed(self.stages) if stage.adopted), None)
        if adopted is None or self.baseline is None:
            return None
        results = {}
        for name, result in adopted.workloads.items():
            other = self.baseline.workloads.get(name)
            apart = difference_of(result, other, None, self.study, self._apart) if other else None
            results[name] = replace(result, difference=apart)
        return replace(adopted, workloads=results)

    @property
    def winner(self) -> ArmResult | None:
        """The finalist, unless fresh starts did not confirm it."""
        return None if self.findings.confirmed is False else self.finalist

    @property
    def arms(self) -> list[ArmResult]:
        """The arms of all steps."""
        return list(itertools.chain.from_iterable(step.arms for step in self.steps))

    @property
    def workloads(self) -> list[str]:
        """The deciding workload, then the others in the order of the study."""
        return sorted(self.study.workloads, key=lambda name: name != self.workload)

    @cached_property
    def runs(self) -> list[WorkloadRun]:
        """All runs."""
        return list(
            itertools.chain.from_iterable(trial.runs.values() for trial in self.findings.trials)
        )

    @property
    def hardware(self) -> str:
        """Name of the hardware: the study's, or that of published results; empty if these do not
        name it.
        """
        if not self.published:
            return self.study.hardware.name
        origins = [run.findings.provenance for run in self.runs]
        return " and ".join(
            dict.fromkeys(origin.hardware for origin in origins if origin and origin.hardware)
        )

    @property
    def dates(self) -> str:
        """When the first and the last start began; empty before any."""
        began = [trial.began for trial in self.findings.trials]
        return value_range(min(began), max(began)) if began else ""

    @cached_property
    def builds(self) -> dict[str, str]:
        """The versions of each engine that ran, separated by commas; empty where unknown."""
        builds: dict[str, dict[str, None]] = {}
        for arm in self.arms:
            versions = builds.setdefault(arm.planned.spec.engine, {})
            versions |= dict.fromkeys(trial.build for trial in arm.trials if trial.build)
        return {engine: ", ".join(versions) for engine, versions in builds.items()}

    @property
    def missing(self) -> list[str]:
        """The steps that the study has not finished, a line each."""
        begun = {step.name for step in self.steps}
        open_ = [f"{step.name}: {step.found.open}" for step in self.steps if step.found.open]
        ahead = [stage.name for stage in self.study.stages if stage.name not in begun]
        ahead += [CONFIRMATION] if self.confirmation is None else []
        return open_ + [f"{name}: not begun" for name in ahead]

    @cached_property
    def chain(self) -> dict[str, ArmResult]:
        """The arms from the baseline to the last adopted arm by STAGE/ARM, each compared with the
        one before it.

        One of them need not have been adopted, if a later stage started from it.
        """
        links: list[tuple[str, ArmResult]] = []  # the last one first
        source: str | None = None  # identity of the arm that the last link started from
        for stage in reversed(self.stages):
            arm = stage.adopted
            if source is not None:
                same = (rival for rival in stage.rivals if rival.planned.identity == source)
                arm = next(same, None)
            if arm is None or stage.reference is None:
                continue
            links.append((f"{stage.name}/{arm.name}", arm))
            source = stage.reference.planned.identity
            if self.baseline is not None and source == self.baseline.planned.identity:
                break
        return dict(reversed(links))

    @property
    def overtaken(self) -> dict[str, ArmResult]:
        """The adopted arms that the winner does not build on, by STAGE/ARM: a later stage
        started from another arm.
        """
        adopted = {
            f"{stage.name}/{arm.name}": arm for stage in self.stages if (arm := stage.adopted)
        }
        built_on = {arm.planned.identity for arm in (*self.chain.values(), self.winner) if arm}
        return {name: arm for name, arm in adopted.items() if arm.planned.identity not in built_on}

    @property
    def configurations(self) -> dict[str, tuple[str, WorkloadResult]]:
        """Name and last result on the deciding workload of every configuration that ran it, by
        identity.
        """
        results: dict[str, tuple[str, WorkloadResult]] = {}
        for step in self.steps:
            for arm in step.arms:
                if self.workload in arm.workloads:
                    identity = arm.planned.identity
                    name = (
                        "baseline" if step.found.step.kind == NOISE else f"{step.name}/{arm.name}"
                    )
                    first_name = results.get(identity, (name,))[0]
                    results[identity] = first_name, arm.workloads[self.workload]
        return results

    def apart(self, arm: ArmResult | None, other: ArmResult | None) -> Difference | None:
        """Return the difference of two arms of different steps on the deciding workload; None if
        one has no value.
        """
        result = arm.workloads.get(self.workload) if arm else None
        other_result = other.workloads.get(self.workload) if other else None
        if result is None or other_result is None:
            return None
        return difference_of(result, other_result, None, self.study, self._apart)

    def difference(self, arm: ArmResult | None) -> Difference | None:
        """Return the difference of an arm from its reference on the deciding workload; None if
        it has none.
        """
        result = arm.workloads.get(self.workload) if arm else None
        return result.difference if result else None

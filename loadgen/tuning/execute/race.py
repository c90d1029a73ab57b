"""Race: one step of a study as it goes: arms started block by block, until each of them is decided."""

import json
from collections.abc import Generator, Iterable

import numpy as np

from loadgen.stats import group_sequential
from loadgen.stats.variance import Noise
from loadgen.tuning.execute import trial_score
from loadgen.tuning.execute.accuracy_gate import Gate
from loadgen.tuning.execute.findings import ArmFound, StepFound, Verdict
from loadgen.tuning.execute.same_arms import alike, most_in_flight
from loadgen.tuning.execute.trial import Answered, Trial, Wanted
from loadgen.tuning.plan.plan import CONFIRMATION, NOISE, Planned, Step
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.study import Study

Assignments = frozenset[tuple[str, ...]]  # all that an arm sets
ATTEMPTS = 2  # at a trial that fails for a reason that may pass
_COMPARED = (Verdict.BETTER, Verdict.NOT_SIGNIFICANT, Verdict.WORSE, None)  # None: with nothing to be held against


class Entrant:
    """An arm in a race.

    Attributes:
        planned: The arm.
        verdict: What became of it; None as long as that is open.
        why: What there is to say of that.
        trials: Its starts.
        values: What it achieved, block by block.
        misses: Trials that did not hold what the study demands.
        notes: What else there is to say of it, as of a `Score`.
        comparison: Beside the reference.
    """

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.verdict: Verdict | None = None
        self.why = ""
        self.trials: list[Trial] = []
        self.values: list[float] = []
        self.misses = 0
        self.notes: dict[str, str] = {}
        self.comparison: group_sequential.Comparison | None = None

    def leave(self, verdict: Verdict, why: str) -> None:
        """It is started no more."""
        self.verdict, self.why = verdict, why


class Race:
    """A step that is being carried out.

    Args:
        step: Which.
        study: Whose.
        planner: Knows the engines and the workloads.
        nogoods: All that arms set which cannot be started; those of this step are added.
        before: The noise of the steps before; None where that is not known.
        answered: What the baseline answered to questions; None where it was not asked.

    Attributes:
        over: Whether nothing is to be started any more.
        broken: Why the reference cannot be measured; empty if it can.
    """

    def __init__(
        self,
        step: Step,
        study: Study,
        planner: Planner,
        nogoods: list[Assignments],
        before: Noise | None,
        answered: Answered | None,
    ) -> None:
        self.step, self._study, self._planner, self._nogoods, self._before = step, study, planner, nogoods, before
        self._gate = Gate(study, answered)
        self._entrants = {arm.name: Entrant(arm) for arm in step.arms}
        self._reference = self._entrants[step.reference.name]
        decision = study.decision
        self._plan = group_sequential.Plan(decision.min_effect, decision.confidence, step.least, step.most)
        self.over, self.broken = False, ""

    def run(self) -> Generator[Wanted, Trial, None]:
        """The starts that are wanted; of each, what came of it is to be sent."""
        for entrant in self._rivals():
            nogood = next((bad for bad in self._nogoods if bad <= _assignments(entrant.planned.arm)), None)
            if nogood is not None:
                entrant.leave(Verdict.PRUNED, f"what it sets contains what has failed: {_shown(nogood)}")
        alone = self.step.kind not in (NOISE, CONFIRMATION) and self._decided(self.step.least)
        for block in range(0 if alone else self.step.most):
            for name in self.step.order(self._study.decision.seed, block):
                if self._entrants[name].verdict is None and not self.broken:
                    yield from self._start(self._entrants[name], block)
            if block == 0:
                self._find_alike()
            self._judge(block + 1)
            if self._decided(block + 1):
                break
        self.over = True
        self._adopt()

    def found(self, open_: str = "") -> StepFound:
        """The step as far as it has come.

        Args:
            open_: Why it goes no further now.
        """
        open_ = "" if self.over else open_
        arms = sorted(self._entrants.values(), key=lambda entrant: entrant is not self._reference)
        rivals = max(1, len(list(self._rivals())))
        return StepFound(
            step=self.step,
            arms=tuple(self._told(entrant, open_) for entrant in arms),
            reference=self._reference.planned.name,
            won=tuple(entrant.planned.name for entrant in self._winners()) if self.over else (),
            noise=self._noise(),
            least_effect=group_sequential.detectable_effect(self._before, rivals, self._plan) if self._before else None,
            open=open_,
        )

    def arm(self, name: str) -> Planned:
        """The arm of that name."""
        return self._entrants[name].planned

    @property
    def winners(self) -> list[Planned]:
        """The arms that go on, the best first; none: the reference stays."""
        return [entrant.planned for entrant in self._winners()]

    def _rivals(self) -> Iterable[Entrant]:
        return (entrant for entrant in self._entrants.values() if entrant is not self._reference)

    def _start(self, entrant: Entrant, block: int) -> Generator[Wanted, Trial, None]:
        for attempt in range(ATTEMPTS):
            trial = yield Wanted(self.step.name, block, entrant.planned.name, attempt)
            entrant.trials.append(trial)
            failure = trial.failure
            if failure is None:
                self._count(entrant)
                if self.step.kind == NOISE:
                    self.broken = self._gate.blind(trial.answered)
                return
            if not failure.transient:
                break
        assert failure is not None
        if entrant is self._reference:
            self.broken = f"{failure.kind}: {failure.cause}"
        else:
            entrant.leave(Verdict.FAILED, f"{failure.kind}: {failure.cause}")
            if not failure.transient:
                self._nogoods.append(_assignments(entrant.planned.arm))

    def _count(self, entrant: Entrant) -> None:
        """The last of its trials ran."""
        score = trial_score.score(entrant.planned.arm, entrant.trials, self._study, self._gate)
        entrant.notes |= score.notes
        if score.value is None:
            entrant.leave(Verdict.INFEASIBLE, score.missed)
            return
        entrant.values.append(score.value)
        if score.missed:
            entrant.misses += 1
            entrant.why = score.missed
            if entrant is not self._reference and (score.for_good or entrant.misses >= self.step.least):
                entrant.leave(Verdict.INFEASIBLE, score.missed)

    def _find_alike(self) -> None:
        """Whoever turns out to be served as another is started no more."""
        if self.step.kind == CONFIRMATION:
            return
        arms = [self._reference, *self._rivals()]
        in_flight = max(most_in_flight(self._planner.loads[name]) for name in self.step.arms[0].workloads)
        for place, entrant in enumerate(arms):
            if not entrant.values or entrant.trials[-1].told is None:
                continue
            names = self._planner.served.names(entrant.planned.arm)
            for other in arms[:place]:
                if not other.values or Verdict.SAME_AS in (entrant.verdict, other.verdict):
                    continue
                pair = [(each.planned.arm, each.trials[-1]) for each in (other, entrant)]
                if alike(pair[0], pair[1], names, in_flight):
                    entrant.leave(Verdict.SAME_AS, other.planned.name)

    def _judge(self, blocks: int) -> None:
        """Compare what can be compared after so many blocks."""
        if blocks < self.step.least or len(self._reference.values) < blocks or self.step.kind == NOISE:
            return
        compared = [each for each in self._rivals() if len(each.values) >= self.step.least]
        if not compared:
            return
        gains = {
            each.planned.name: [trial_score.gain(value, self._study) for value in each.values[:blocks]]
            for each in (self._reference, *compared)
        }
        for name, comparison in group_sequential.compare(gains, self._reference.planned.name, self._plan).items():
            entrant = self._entrants[name]
            entrant.comparison = comparison
            if entrant.verdict is None and comparison.decision is not group_sequential.Decision.OPEN:
                if comparison.decision is group_sequential.Decision.BETTER:
                    entrant.leave(Verdict.BETTER, "")
                else:
                    entrant.leave(Verdict.WORSE if comparison.high < 0 else Verdict.NOT_SIGNIFICANT, "")

    def _decided(self, blocks: int) -> bool:
        """Whether nothing is open after so many blocks."""
        if self.broken:
            return True
        if self.step.kind == NOISE or blocks < self.step.least:
            return False
        nothing_to_compare = self._reference.verdict is not None
        return nothing_to_compare or all(entrant.verdict is not None for entrant in self._rivals())

    def _adopt(self) -> None:
        for entrant in self._rivals():
            if entrant.verdict is None and self.broken:
                entrant.leave(Verdict.NOT_RUN, f"the arm to compare with failed: {self.broken}")
            elif entrant.verdict in (Verdict.BETTER, None) and not self._feasible(entrant):
                entrant.leave(Verdict.INFEASIBLE, entrant.why)
        if not self._feasible(self._reference) and not self.broken:
            able = [each for each in self._rivals() if self._feasible(each) and each.verdict in _COMPARED]
            for entrant in able:
                entrant.leave(Verdict.BETTER, f"it holds what {self._reference.planned.name} does not")
        for entrant in self._winners():
            entrant.verdict = Verdict.ADOPTED

    def _feasible(self, entrant: Entrant) -> bool:
        return self._told(entrant, "").feasible

    def _winners(self) -> list[Entrant]:
        """Those that go on, the best first; of two as good, the one that sets less."""
        won = [each for each in self._rivals() if each.verdict in (Verdict.BETTER, Verdict.ADOPTED)]
        won.sort(key=self._level, reverse=True)
        if won:
            floor = self._level(won[0]) / (1 + self._study.decision.min_effect)
            tied = [each for each in won if self._level(each) >= floor]
            first = min(tied, key=lambda each: each.planned.arm.overrides)
            won = [first, *(each for each in won if each is not first)]
        return won[: self._study.keep]

    def _level(self, entrant: Entrant) -> float:
        """Beside the reference, in blocks that both have; more is better."""
        if entrant.comparison is not None:
            return 1 + entrant.comparison.effect
        beside = trial_score.gain(self._reference.values[0], self._study) if self._reference.values else 1.0
        return trial_score.gain(entrant.values[0], self._study) / beside

    def _noise(self) -> Noise | None:
        """Of the arms that have run in every block so far; in the first step, of the one arm there is."""
        rows = [each.values for each in self._entrants.values() if len(each.values) >= 2]
        if self.step.kind == NOISE:
            return Noise.of_replicates(np.log(rows[0])) if rows else None
        blocks = min(map(len, rows), default=0)
        return Noise.of_two_way_layout(np.log([row[:blocks] for row in rows])) if len(rows) >= 2 else None

    def _told(self, entrant: Entrant, open_: str) -> ArmFound:
        verdict, why = entrant.verdict, entrant.why
        if entrant is self._reference:
            verdict, why = (Verdict.FAILED, self.broken) if self.broken else (Verdict.REFERENCE, entrant.why)
        notes = entrant.notes.values()
        return ArmFound(
            planned=entrant.planned,
            verdict=verdict or (Verdict.OPEN if entrant.trials else Verdict.NOT_RUN),
            why=why if verdict is Verdict.SAME_AS else "; ".join(filter(None, [why if verdict else open_, *notes])),
            trials=tuple(entrant.trials),
            values=tuple(entrant.values),
            misses=entrant.misses,
            comparison=entrant.comparison,
        )


def _assignments(arm: Arm) -> Assignments:
    """All that an arm sets."""
    return frozenset(
        [
            ("engine", arm.engine),
            ("model", arm.model),
            ("replicas", str(arm.replicas)),
            *((("devices", *arm.devices),) if arm.devices else ()),
            *((name, json.dumps(value, sort_keys=True)) for name, value in arm.knobs.items()),
            *((name, *words) for name, words in arm.raw.items()),
            *((f"${name}", value) for name, value in arm.env.items()),
        ]
    )


def _shown(nogood: Assignments) -> str:
    return " ".join("=".join(part) for part in sorted(nogood) if part != ("replicas", "1"))

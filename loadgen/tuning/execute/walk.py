"""Walk: a study as a function of its trials: which start it wants next, and what it has found so far.

Whoever carries a study out asks for the next start and gives back what came of it. Since nothing else decides, a study
that was interrupted goes on by being walked again with the trials that were kept, and is reported in the same way.
"""

from collections.abc import Generator

from loadgen.stats.variance import Noise
from loadgen.tuning.execute.findings import Findings, StepFound
from loadgen.tuning.execute.joint_search import Drawing
from loadgen.tuning.execute.race import Assignments, Race
from loadgen.tuning.execute.trial import Answered, Trial, Wanted
from loadgen.tuning.plan.plan import Planned, Step
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec.stages import Joint
from loadgen.tuning.spec.study import Study


class Walk:
    """A study that is being walked.

    Args:
        study: Which; it has been checked.
        planner: Lays out its steps.

    Attributes:
        wanted: The start that comes next; None once there is none.
        broken: Why the study cannot go on; empty if it can.
    """

    def __init__(self, study: Study, planner: Planner) -> None:
        self.study, self._planner = study, planner
        self._done: list[StepFound] = []
        self._race: Race | Drawing | None = None
        self._nogoods: list[Assignments] = []
        self._answered: Answered | None = None
        self.broken = ""
        self._starts = self._run()
        self.wanted: Wanted | None = None
        self._advance(None)

    @property
    def planned(self) -> Planned:
        """The arm of the start that is wanted."""
        assert self.wanted is not None
        assert self._race is not None
        return self._race.arm(self.wanted.arm)

    @property
    def step(self) -> Step | None:
        """The step that goes on; None if none does."""
        return self._race.step if self._race else None

    def add(self, trial: Trial) -> None:
        """What came of the start that was wanted."""
        self._advance(trial)

    def found(self, open_: str = "") -> Findings:
        """What is known.

        Args:
            open_: Why nothing more is started, if more is wanted.
        """
        open_ = open_ if self.wanted is not None else self.broken
        running = [self._race.found(open_)] if self._race is not None else []
        return Findings(self.study, (*self._done, *running), open_)

    def _advance(self, trial: Trial | None) -> None:
        try:
            self.wanted = next(self._starts) if trial is None else self._starts.send(trial)
        except StopIteration:
            self.wanted = None

    def _run(self) -> Generator[Wanted, Trial, None]:
        yield from self._raced(self._planner.noise())
        trials = self._done[0].arms[0].trials
        self._answered = next((trial.answered for trial in trials if trial.answered is not None), None)
        if self.broken:
            return
        for number, stage in enumerate(self.study.stages):
            step = self._planner.stage(number)
            if isinstance(stage, Joint):
                step = yield from self._drawn(number, stage, step)
            yield from self._raced(step, number)
            if self.broken:
                return
        yield from self._raced(self._planner.confirmation())

    def _raced(self, step: Step, number: int | None = None) -> Generator[Wanted, Trial, None]:
        before = Noise.pooled([found.noise for found in self._done if found.noise is not None])
        self._race = race = Race(step, self.study, self._planner, self._nogoods, before, self._answered)
        yield from race.run()
        self._race = None
        self._done.append(race.found())
        if race.broken:
            self.broken = f"{step.name}: {step.reference.name} fails, {race.broken}"
        if number is not None:
            self._planner.adopt(number, step.arms, race.winners)

    def _drawn(self, number: int, stage: Joint, step: Step) -> Generator[Wanted, Trial, Step]:
        """Draw arms; the best of them is the only rival in the step that is returned."""
        self._race = drawing = Drawing(step, number, stage, self.study, self._planner, self._answered)
        yield from drawing.run()
        self._race = None
        self._done.append(drawing.found())
        return drawing.final()

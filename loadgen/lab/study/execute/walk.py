"""A walk through a study as a function of its trials: the start that is needed next, and the findings so far.

Its caller asks for the next start and adds the trial of it. Nothing else decides: an interrupted study goes on when the
walk is repeated with the trials in the store, and a report repeats the walk in the same way.
"""

from collections.abc import Generator
from dataclasses import replace

from loadgen.lab.study.execute.findings import Findings, StepResult
from loadgen.lab.study.execute.joint_search import JointSearch
from loadgen.lab.study.execute.step_run import Assignments, StepRun
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest, first_answers
from loadgen.lab.study.plan.plan import PlannedArm, Step
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.stages import Joint
from loadgen.lab.study.spec.study import Study
from loadgen.stats.variance import Noise


class Walk:
    """A walk through a study.

    Args:
        study: The study, checked.
        planner: Its planner.

    Attributes:
        request: The start that is needed next; None: none.
        broken: Why the study cannot go on; empty if it can.
    """

    def __init__(self, study: Study, planner: Planner) -> None:
        self.study, self._planner = study, planner
        self._done: list[StepResult] = []
        self._running: StepRun | JointSearch | None = None
        self._nogoods: list[Assignments] = []
        self._base_answers: Answers | None = None
        self.broken = ""
        self._requests = self._run()
        self.request: TrialRequest | None = next(self._requests, None)

    @property
    def planned(self) -> PlannedArm:
        """The arm of the start that is needed next."""
        assert self.request is not None
        assert self._running is not None
        return self._running.arm(self.request.arm)

    @property
    def block(self) -> list[tuple[TrialRequest, PlannedArm]]:
        """The starts of the running block that are needed from now on, each with its arm, as far as it is known."""
        assert self.request is not None
        assert self._running is not None
        names = self._running.arms_ahead if self.request.attempt == 0 else ()
        requests = [self.request, *(replace(self.request, arm=name) for name in names)]
        return [(request, self._running.arm(request.arm)) for request in requests]

    @property
    def step(self) -> Step | None:
        """The step that is running; None if none is."""
        return self._running.step if self._running else None

    def add(self, trial: Trial) -> None:
        """Add the trial of the start that was needed."""
        try:
            self.request = self._requests.send(trial)
        except StopIteration:
            self.request = None

    def found(self, open_: str = "") -> Findings:
        """Return the findings so far.

        Args:
            open_: Why no more starts are made, if more are needed.
        """
        open_ = open_ if self.request is not None else self.broken
        running = [self._running.found(open_)] if self._running is not None else []
        return Findings(self.study, (*self._done, *running), open_)

    def _run(self) -> Generator[TrialRequest, Trial, None]:
        yield from self._run_step(self._planner.noise())
        self._base_answers = first_answers(self._done[0].arms[0].trials)
        if self.broken:
            return
        for number, stage in enumerate(self.study.stages):
            step = self._planner.stage(number)
            if isinstance(stage, Joint):
                self._running = search = JointSearch(step, number, stage, self.study, self._planner, self._base_answers)
                yield from search.run()
                self._running = None
                self._done.append(search.found())
                step = search.final()
            yield from self._run_step(step, number)
            if self.broken:
                return
        yield from self._run_step(self._planner.confirmation())

    def _run_step(self, step: Step, number: int | None = None) -> Generator[TrialRequest, Trial, None]:
        noise = Noise.pooled([found.noise for found in self._done if found.noise is not None])
        self._running = run = StepRun(step, self.study, self._planner, self._nogoods, noise, self._base_answers)
        yield from run.run()
        self._running = None
        self._done.append(run.found())
        if run.broken:
            self.broken = f"{step.name}: {step.reference.name} fails, {run.broken}"
        if number is not None:
            self._planner.adopt(number, step.arms, run.winners)

"""Engine core: runs the scheduler's steps by the clock and sends the tokens of each step; and
the cores of a server.
"""

import asyncio
import math
import random

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.emit import emit
from loadgen.engines.sim.metrics import Metrics
from loadgen.engines.sim.planted import PlantedFaults
from loadgen.engines.sim.scheduler import Progress, Scheduler, Step
from loadgen.engines.sim.settings import Faults, SimSettings
from loadgen.util.clock import Alarm, now_ns


class EngineCore:
    """Runs steps on an absolute plan: a step begins when the one before was planned to end, even if
    the loop woke late.

    A step ends late only if writing the tokens of the step before took longer than the whole step.
    The metrics count that time.

    Args:
        settings: Settings of each core.
        loop: The event loop.
        metrics: Metrics of all cores together.
        number: Number of this core; each core has its own noise.
        faults: Faults to simulate, of which it has those of time.
    """

    def __init__(
        self,
        settings: SimSettings,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics,
        number: int = 0,
        faults: Faults | None = None,
    ) -> None:
        self.metrics = metrics
        self.number = number
        noise = Noise(
            settings.noise, settings.start_noise, settings.seed + settings.noise_seed + number
        )
        self.scheduler: Scheduler[Answer] = Scheduler(settings.limits, settings.costs, noise)
        self._frontend_ns = round(settings.frontend_ms * 1e6)
        self._planted = PlantedFaults(
            faults or Faults(), settings.frontend_ms / 1e3, loop, settings.seed + number
        )
        self._step: Step[Answer] | None = None
        self._alarm = Alarm(loop, self._wake)

    @property
    def requests(self) -> int:
        """Number of requests that have not got their last token."""
        return self.scheduler.running + self.scheduler.waiting

    def submit(self, answer: Answer) -> None:
        """Queue the answer to a new request."""
        answer.arrival_ns = now_ns()
        answer.ready_ns = answer.arrival_ns + self._frontend_ns
        self._planted.submitted(answer)
        self.scheduler.add(answer)
        if self._step is None:
            self._begin(answer.arrival_ns)

    def abort(self, answer: Answer) -> None:
        """Drop an answer whose client has disconnected; a finished one stays counted as
        finished.
        """
        if answer.generated < answer.output_tokens:
            self.scheduler.cancel(answer)
            self.metrics.finished["abort"] += 1
        self._count_cut(answer)

    def close(self) -> None:
        """Run no more steps."""
        self._alarm.close()

    def _begin(self, begin_ns: int) -> None:
        """Plan the step that begins at `begin_ns`, or wait until the next sequence is ready."""
        self._step = self.scheduler.plan(begin_ns)
        if self._step is not None:
            self._step.end_ns += self._planted.pause_ns(begin_ns)
            self._alarm.set(self._step.end_ns)
        elif self.scheduler.next_ready_ns is not None:
            self._alarm.set(self.scheduler.next_ready_ns)

    def _wake(self) -> None:
        """End the step, begin the next one, and send the tokens of the step that ended."""
        step = self._step
        if step is None:
            self._begin(self.scheduler.next_ready_ns or 0)
            return
        progress = self.scheduler.complete(step)
        self._begin(step.end_ns)
        self._count(step, progress)
        self._planted.freeze(step.end_ns, progress.continued)
        emit([answer.stream for answer in progress.continued])
        for answer in progress.finished:
            answer.finish()
            self._count_cut(answer)
        for answer in progress.started:
            answer.start()
        if self._step is not None and (late_ns := now_ns() - self._step.end_ns) > 0:
            self._step.end_ns += late_ns
            self.metrics.step_overrun_s += late_ns / 1e9

    def _count(self, step: Step[Answer], progress: Progress[Answer]) -> None:
        metrics = self.metrics
        metrics.steps += 1
        metrics.iteration_tokens.observe(step.prefill_tokens + step.decodes)
        metrics.generation_tokens += len(progress.started) + len(progress.continued)
        metrics.itl_s.observe((step.end_ns - step.begin_ns) / 1e9, times=step.decodes)
        for answer in progress.started:
            self._count_first(answer, step.end_ns)
        for answer in progress.finished:
            if answer.generated == 1:
                self._count_first(answer, step.end_ns)
            metrics.finished[answer.request.finish_reason] += 1
            if answer.generates:
                metrics.generation_tokens += 1
            metrics.request_generation_tokens.observe(answer.generated if answer.generates else 0)
            metrics.e2el_s.observe((step.end_ns - answer.arrival_ns) / 1e9)
            metrics.queue_s.observe((answer.scheduled_ns - answer.ready_ns) / 1e9)
            metrics.prefill_s.observe((answer.first_ns - answer.scheduled_ns) / 1e9)
            metrics.decode_s.observe((answer.last_ns - answer.first_ns) / 1e9)

    def _count_cut(self, answer: Answer) -> None:
        if answer.stream is not None and answer.stream.cut:
            self.metrics.streams_cut += 1

    def _count_first(self, answer: Answer, now_ns: int) -> None:
        self.metrics.prompt_tokens += answer.prompt_tokens
        self.metrics.request_prompt_tokens.observe(answer.prompt_tokens)
        if answer.generates:
            self.metrics.ttft_s.observe((now_ns - answer.arrival_ns) / 1e9)


class CorePool:
    """The engine cores, each with its own scheduler and prefix cache; a request goes to the one
    with fewest requests.

    Args:
        settings: Settings of each core; `data_parallel_size` is their number.
        loop: The event loop.
        faults: Faults to simulate.

    Attributes:
        metrics: Metrics of all cores together.
    """

    def __init__(
        self, settings: SimSettings, loop: asyncio.AbstractEventLoop, faults: Faults
    ) -> None:
        self.metrics = Metrics()
        self._settings = settings
        self._cores = [
            EngineCore(settings, loop, self.metrics, number, faults)
            for number in range(settings.data_parallel_size)
        ]

    @property
    def requests(self) -> int:
        """Number of requests that have not got their last token."""
        return sum(core.requests for core in self._cores)

    def submit(self, answer: Answer) -> None:
        """Give each sequence of the answer to a new request to a core."""
        for sequence in answer.sequences:
            core = min(self._cores, key=lambda core: core.requests)
            sequence.core = core.number
            core.submit(sequence)

    def abort(self, answer: Answer) -> None:
        """Drop an answer whose client has disconnected."""
        for sequence in answer.sequences:
            self._cores[sequence.core].abort(sequence)

    def exposition(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self.metrics.text(self._settings, [core.scheduler for core in self._cores])

    def reset_prefix_cache(self) -> None:
        """Remove the blocks that no running sequence uses."""
        for core in self._cores:
            core.scheduler.cache.clear()

    def close(self) -> None:
        """Run no more steps."""
        for core in self._cores:
            core.close()


class Noise:
    """Lognormal random factors of step times, with mean 1; equal seeds give equal factors.

    Args:
        step: Standard deviation of the logarithm, drawn for each step.
        start: Standard deviation of the logarithm, drawn once for all steps of this start.
        seed: Seed of both.
    """

    def __init__(self, step: float, start: float, seed: int) -> None:
        self._draw = random.Random(seed)
        self._step = step
        self._start = self._factor(start)

    def __call__(self) -> float:
        """Return the factor of the next step."""
        return self._start * self._factor(self._step) if self._step else self._start

    def _factor(self, deviation: float) -> float:
        return math.exp(self._draw.gauss(-(deviation**2) / 2, deviation))

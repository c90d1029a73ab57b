"""Records of a simulated run without a process or a clock: what happened is known to the ns."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.scheduler import Limits, Scheduler, StepCosts
from loadgen.engines.sim.scheduler import Sequence as Job

MS = 1_000_000
START_NS = 10**12


@dataclass(frozen=True)
class Answer:
    """One request, in ns from START_NS.

    Attributes:
        due, sent, first_byte: When it was due, sent, and answered; first_byte 0: with a token.
        prompt: Prompt tokens.
        tokens: When each token came.
        earliest: When each came at the earliest, by its number; the others are exact.
        together: How many tokens each event bears.
        target: The number of its server.
    """

    due: int
    sent: int
    prompt: int
    tokens: tuple[int, ...]
    first_byte: int = 0
    connect: int = 0
    retried: int = 0
    cap: int = 0
    earliest: tuple[tuple[int, int], ...] = ()
    together: int = 1
    target: int = 0
    reordered: int = 0

    def record(self, index: int) -> Record:
        """Make its record."""
        record = Record(index, self.prompt, len(self.tokens) * self.together, START_NS + self.due)
        record.ready = record.due + self.cap
        record.connect_ns = self.connect
        record.retried_ns = self.retried
        record.sent = record.written = START_NS + self.sent
        stamps = [START_NS + at for at in self.tokens]
        earliest = [(number, START_NS + at) for number, at in self.earliest]
        record.restore(stamps, earliest=earliest or None)
        record.first_token = record.first_answer = stamps[0]
        record.first_byte = START_NS + self.first_byte if self.first_byte else stamps[0]
        record.last_token = stamps[-1]
        record.prompt_tokens = self.prompt
        record.completion_tokens = len(self.tokens) * self.together
        record.target = self.target
        record.reordered = self.reordered
        record.end(Outcome.OK, None, stamps[-1])
        return record

    def later(self, move: Callable[[int], int]) -> "Answer":
        """Return it with other times of tokens."""
        return replace(self, tokens=tuple(map(move, self.tokens)))


def served(
    *,
    count: int = 150,
    rate: float = 8.0,
    base_ms: float = 10.0,
    prompt_us: float = 20.0,
    stream_us: float = 50.0,
    outside_ms: float = 3.0,
    prompts: Sequence[int] = (64, 512),
    answers: Sequence[int] = (24, 64),
    noise: float = 0.02,
    pause: Callable[[int], int] = lambda now_ns: 0,
    seed: int = 1,
    **limits: int,
) -> list[Answer]:
    """Serve Poisson arrivals by the scheduler of the simulator.

    Args:
        count, rate: The load.
        base_ms, prompt_us, stream_us: What a step costs; each stream costs stream_us.
        outside_ms: The way to the scheduler.
        prompts, answers: The least and the greatest length, tokens.
        noise: Standard deviation of a step's length, as a share.
        pause: How long the step that begins at a time lasts longer, ns.
        seed: Of all that is drawn.
        limits: Of the scheduler.
    """
    draw = random.Random(seed)
    scheduler = Scheduler[Job](
        Limits(
            **{"max_num_seqs": 4096, "max_num_batched_tokens": 32768, "num_kv_tokens": 1 << 22}
            | limits
        ),
        StepCosts(base_ms * MS, prompt_us * 1e3, stream_us * 1e3, 0.0),
        lambda: max(0.1, draw.gauss(1.0, noise)),
    )
    due, jobs, times = 0, [], list[tuple[int, Job, list[int]]]()
    for _ in range(count):
        due += int(draw.expovariate(rate) * 1e9)
        ready = due + int(outside_ms * MS)
        job = Job(draw.randint(*prompts), draw.randint(*answers), ready_ns=ready)
        jobs.append(job)
        times.append((due, job, []))
    came = {id(job): tokens for _, job, tokens in times}
    for job in jobs:
        scheduler.add(job)
    now = 0
    while scheduler.running or scheduler.waiting:
        step = scheduler.plan(now)
        if step is None:
            assert scheduler.next_ready_ns is not None
            now = scheduler.next_ready_ns
            continue
        now = step.end_ns = step.end_ns + pause(now)
        progress = scheduler.complete(step)
        for job in (*progress.started, *progress.continued, *progress.finished):
            came[id(job)].append(now + draw.randrange(200_000))
    return [
        Answer(due, due + 50_000, job.prompt_tokens, tuple(tokens)) for due, job, tokens in times
    ]


def records(answers: Sequence[Answer]) -> list[Record]:
    """Make the records of some answers."""
    return [answer.record(index) for index, answer in enumerate(answers)]

"""The simulator's scheduler in virtual time: no clock, no socket."""

import random
from collections import deque
from collections.abc import Iterable, Iterator

from loadgen.engines.sim.scheduler import Progress, Scheduler, Sequence, Step
from loadgen.engines.sim.settings import SimSettings

MS = 1_000_000


def steps(
    engine: Scheduler[Sequence], arrivals: Iterable[Sequence] = ()
) -> Iterator[tuple[Step[Sequence], Progress[Sequence]]]:
    """Run until nothing is left; `arrivals` are in order of `ready_ns` and come no earlier."""
    coming = deque(arrivals)
    now_ns = 0
    while True:
        while coming and coming[0].ready_ns <= now_ns:
            engine.add(coming.popleft())
        step = engine.plan(now_ns)
        if step is not None:
            yield step, engine.complete(step)
            now_ns = step.end_ns
        elif coming:
            now_ns = coming[0].ready_ns
        else:
            return


def poisson(
    settings: SimSettings, rate: float, count: int, prompt: int, output: int, seed: int = 1
) -> list[Sequence]:
    """Requests that arrive at random, so many a second."""
    draw, due_s, arrivals = random.Random(seed), 0.0, []
    for _ in range(count):
        due_s += draw.expovariate(rate)
        arrivals.append(
            Sequence(prompt, output, ready_ns=round(due_s * 1e9 + settings.frontend_ms * MS))
        )
    return arrivals

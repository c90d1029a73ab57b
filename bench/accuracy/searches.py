"""How near a search comes to the truth: `python -m bench.accuracy.searches [--seeds N] [--write]`.

Each load is searched with several seeds while nothing else runs, and beside two programs that never
sleep. The truth is that of the simulator's scheduler in virtual time. A search takes one to three
minutes. Ends with 1 if a bar is missed.
"""

import argparse
import asyncio
import math
import random
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import loadgen
from bench.accuracy.conditions import hogs
from bench.table import table
from loadgen.config.load import AxisName
from loadgen.engines.sim.scheduler import Scheduler
from loadgen.engines.sim.scheduler import Sequence as Request
from loadgen.engines.sim.settings import SimSettings
from loadgen.util.number_format import percent, plural
from tests.helpers.documents import between
from tests.helpers.sim_steps import MS, poisson, steps
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench" / "results" / "accuracy.md"
BEGIN = "<!-- searches: made by python -m bench.accuracy.searches --write -->"
END = "<!-- end of searches -->"
NEIGHBORS = 2
SEEDS, DURATION_S, MIN_REQUESTS = 10, 20, 1000
PROMPT, MIN_ANSWER, MAX_ANSWER = 64, 10, 30  # tokens
SIMULATED = 30_000  # requests, of which the first tenth is left out
WITHIN, WIDTH = 0.05, 1.5
SHARE, NARROW = 0.9, 0.5  # of the searches that are as near, and as narrow
Bracket = tuple[float, float]  # the highest level that meets the limit, a higher one that misses it


@dataclass(frozen=True)
class Load:
    """What is searched, of a simulator whose step takes 10 ms and 0.1 ms for each sequence.

    Attributes:
        over: The axis.
        slo: The limit, in ms.
        slots: Of the simulator.
        first: The first level.
        figure: What the limit is on, ms, of TTFTs and TPOTs.
    """

    over: AxisName
    slo: str
    slots: int
    first: float
    figure: Callable[[np.ndarray, np.ndarray], float]

    @property
    def limit_ms(self) -> float:
        """The limit, ms."""
        return float(self.slo.split("<")[1])

    @property
    def server(self) -> dict[str, float]:
        """Settings of the simulator."""
        costs = {"step_base_ms": 10.0, "decode_us_per_seq": 100.0}
        return {**costs, "max_num_seqs": self.slots}


def p90_ttft(ttft_ms: np.ndarray, tpot_ms: np.ndarray) -> float:
    """The 90th percentile of TTFT."""
    return float(np.percentile(ttft_ms, 90))


def mean_tpot(ttft_ms: np.ndarray, tpot_ms: np.ndarray) -> float:
    """The mean TPOT."""
    return float(tpot_ms.mean())


LOADS = (
    Load("rate", "ttft_p90<200", slots=16, first=10, figure=p90_ttft),
    Load("rate", "tpot_mean<12", slots=256, first=10, figure=mean_tpot),
    Load("concurrency", "ttft_p90<100", slots=16, first=4, figure=p90_ttft),
    Load("concurrency", "tpot_mean<12", slots=256, first=4, figure=mean_tpot),
)


def at_rate(settings: SimSettings, level: float) -> list[Request]:
    """Requests that arrive at random, after they ended."""
    draw = random.Random(1)
    arrivals = poisson(settings, level, SIMULATED, PROMPT, MAX_ANSWER)
    for each in arrivals:
        each.output_tokens = draw.randint(MIN_ANSWER, MAX_ANSWER)
    for _ in steps(Scheduler(settings.limits, settings.costs), arrivals):
        pass
    return arrivals


def in_flight(settings: SimSettings, level: float) -> list[Request]:
    """Requests of which so many are in flight, after they ended."""
    engine: Scheduler[Request] = Scheduler(settings.limits, settings.costs)
    draw = random.Random(1)
    requests: list[Request] = []

    def send(now_ns: int) -> Request:
        ready_ns = now_ns + round(settings.frontend_ms * MS)
        requests.append(Request(PROMPT, draw.randint(MIN_ANSWER, MAX_ANSWER), ready_ns=ready_ns))
        return requests[-1]

    coming = deque(send(0) for _ in range(round(level)))
    now_ns = 0
    while len(requests) < SIMULATED:
        while coming and coming[0].ready_ns <= now_ns:
            engine.add(coming.popleft())
        step = engine.plan(now_ns)
        if step is None:
            now_ns = coming[0].ready_ns
            continue
        now_ns = step.end_ns
        coming.extend(send(now_ns) for _ in engine.complete(step).finished)
    return [each for each in requests if each.last_ns]


def figure_ms(load: Load, level: float) -> float:
    """What the limit of a load is on, at a level, ms."""
    settings = SimSettings.of(**load.server)
    run = at_rate if load.over == "rate" else in_flight
    requests = run(settings, level)[SIMULATED // 10 :]
    frontend_ms = settings.frontend_ms
    ttft_ms = [frontend_ms + (each.first_ns - each.ready_ns) / MS for each in requests]
    tpot_ms = [(each.last_ns - each.first_ns) / MS / (each.output_tokens - 1) for each in requests]
    return load.figure(np.array(ttft_ms), np.array(tpot_ms))


def truth(load: Load) -> float:
    """The highest level within the limit."""
    at_least, at_most = load.first, load.first
    while figure_ms(load, at_most) <= load.limit_ms:
        at_least, at_most = at_most, at_most * 2
    nearest = 1.0 if load.over == "concurrency" else 0.001 * at_least
    while at_most - at_least > nearest:
        level = (at_least + at_most) / 2
        if load.over == "concurrency":
            level = float(int(level))
        if figure_ms(load, level) <= load.limit_ms:
            at_least = level
        else:
            at_most = level
    return at_least


async def bracket(load: Load, seed: int) -> Bracket:
    """What a search finds."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in load.server.items())
    settings = loadgen.RunSettings(
        engine="sim",
        engine_arg=(words,),
        slo=f"{load.slo}ms",
        duration=DURATION_S if load.over == "rate" else None,
        num_prompts=None if load.over == "rate" else MIN_REQUESTS,
        random_input_len=PROMPT,
        random_output_len=f"{MIN_ANSWER}:{MAX_ANSWER}",
        seed=seed,
    )
    found = (await loadgen.search(settings, over=load.over)).found
    assert found is not None
    return found.level or 0.0, found.fails or math.inf


def is_near(found: Bracket, true: float) -> bool:
    """Whether the level that was found is near to the truth."""
    return abs(found[0] - true) <= WITHIN * true


def holds(found: Bracket, true: float) -> bool:
    """Whether the truth is in a bracket; what is as near to its lower end is in it."""
    return is_near(found, true) or found[0] <= true < found[1]


def is_narrow(found: Bracket) -> bool:
    """Whether a bracket says much."""
    return found[1] <= WIDTH * found[0]


async def searched(load: Load, true: float, seeds: int, neighbors: int) -> list[Bracket]:
    """The brackets of searches with so many seeds."""
    found = []
    for seed in range(seeds):
        with hogs(neighbors):
            found.append(await bracket(load, seed))
        low, high = found[-1]
        print(
            f"{load.over}, {load.slo} ms, seed {seed}, {plural(neighbors, 'neighbor')}: "
            f"{low:g} to {high:g}, true {true:.4g}",
            flush=True,
        )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Search, print, and write where asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.searches", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"of each load ({SEEDS})")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCUMENT.name}")
    flags = parser.parse_args(argv)
    count = len(LOADS) * flags.seeds
    near, held, narrow = 0, 0, 0
    rows = []
    for load in LOADS:
        true = truth(load)
        quiet, busy = (
            asyncio.run(searched(load, true, flags.seeds, neighbors))
            for neighbors in (0, NEIGHBORS)
        )
        counts = (
            sum(is_near(each, true) for each in quiet),
            sum(holds(each, true) for each in busy),
            sum(is_narrow(each) for each in busy),
        )
        near, held, narrow = near + counts[0], held + counts[1], narrow + counts[2]
        rows.append([load.over, f"`{load.slo}ms`", f"{true:.4g}", *map(str, counts)])
    rows.append(["all", "", "", str(near), str(held), str(narrow)])
    heads = ["over", "limit", "true", f"within {percent(WITHIN)}, quiet"]
    heads += ["bracket holds it, busy", f"at most {WIDTH:g} wide, busy"]
    text = table(heads, rows)
    text += (
        f"\n{flags.seeds} searches of each, quiet and busy; busy: beside "
        f"{NEIGHBORS} programs that never sleep.\n"
    )
    print(text)
    if flags.write:
        between(DOCUMENT, BEGIN, text, END)
    is_met = min(near, held) >= SHARE * count and narrow >= NARROW * count
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())

"""How often the gate of docs/ci.md is wrong: `python -m bench.accuracy.gate [--quick] [--write]`.

The simulator is started three times for each side, in turn, and the two sides are compared as
`loadgen compare --fail-if` does. Equal sides must not fail; a side whose steps take 10 % longer
must. A pair takes about a minute. Ends with 1 if a bar is missed.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from math import comb

import loadgen
from bench.table import table
from loadgen.stats.distributions import bisect_end
from loadgen.util.number_format import percent
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench" / "results" / "accuracy.md"
BEGIN, END = "<!-- gate: made by python -m bench.accuracy.gate --write -->", "<!-- end of gate -->"
STARTS = 3  # of each side
CONDITION = "tpot_p50>+5%"
STEP_MS, SLOWER = 8.0, 1.10
START_NOISE = 0.01
EQUAL_PAIRS, SLOWER_PAIRS, MIN_FAILED = 60, 20, 18
OUTCOMES = {True: "FAILED", False: "passed", None: "cannot tell"}


async def started(step_ms: float, seed: int, requests: int) -> loadgen.Result:
    """A run on a simulator that is started for it; each start has another noise."""
    words = f"--step-base-ms {step_ms} --start-noise {START_NOISE} --noise-seed {seed}"
    settings = loadgen.RunSettings(
        engine="sim",
        engine_arg=(words,),
        request_rate=20,
        num_prompts=requests,
        random_input_len=64,
        random_output_len=32,
    )
    return await loadgen.run(settings)


async def outcome(number: int, factor: float, requests: int) -> str:
    """What the gate says of one pair of sides.

    Args:
        number: Of the pair; no two have a start in common.
        factor: How much longer a step of the second side takes.
        requests: Of a run.
    """
    sides: tuple[list[loadgen.Result], list[loadgen.Result]] = ([], [])
    for start in range(STARTS):
        for place, step_ms in enumerate((STEP_MS, STEP_MS * factor)):
            seed = (number * STARTS + start) * 2 + place
            sides[place].append(await started(step_ms, seed, requests))
    (judgement,) = loadgen.compare(*sides, fail_if=CONDITION).judgements
    print(judgement, flush=True)
    return OUTCOMES[judgement.failed]


def upper_bound(count: int, of: int) -> float:
    """The upper 95 % confidence bound of a share (Clopper and Pearson, one-sided)."""

    def is_likely(share: float) -> bool:
        chance = sum(comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count + 1))
        return chance >= 0.05

    return 1.0 if count == of else bisect_end(is_likely, 1e-6)


async def measure(equal: int, slower: int, requests: int) -> tuple[Counter[str], Counter[str]]:
    """The outcomes of pairs of equal sides, and of pairs of which the second is slower."""
    same = Counter([await outcome(number, 1.0, requests) for number in range(equal)])
    numbers = range(equal, equal + slower)
    return same, Counter([await outcome(number, SLOWER, requests) for number in numbers])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.gate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two pairs of each, to see it work")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCUMENT.name}")
    flags = parser.parse_args(argv)
    pairs = (2, 2) if flags.quick else (EQUAL_PAIRS, SLOWER_PAIRS)
    same, slower = asyncio.run(measure(*pairs, requests=40 if flags.quick else 200))
    names = [*OUTCOMES.values()]
    rows = [
        (label, str(count), *(str(found[name]) for name in names))
        for label, count, found in (
            ("equal", pairs[0], same),
            (f"steps {percent(SLOWER - 1)} longer", pairs[1], slower),
        )
    ]
    bound = percent(upper_bound(same["FAILED"], pairs[0]), 1)
    text = table(["sides", "pairs", *names], rows)
    text += f"\n`{CONDITION}`, {STARTS} starts of each side; equal sides fail in at most {bound}.\n"
    print(text)
    if flags.write:
        between(DOCUMENT, BEGIN, text, END)
    if flags.quick:
        return 0
    return int(same["FAILED"] > 0 or slower["FAILED"] < MIN_FAILED)


if __name__ == "__main__":
    sys.exit(main())

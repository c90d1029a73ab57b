"""Simulated stages on a machine that other processes use: what they decide; makes a table of the
docs.

`python -m tests.slow.statistics.disturbed_stages` writes the table into bench/results/studies.md.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from loadgen.lab.study.plan.plan import NOISE_STARTS
from loadgen.stats.group_sequential import Comparison, Decision, Plan, compare
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats
from tests.helpers.documents import between, table
from tests.slow.statistics.stages import DOCUMENT, DRIFT, SIGMA

STAGES = 4_000
BEGIN = "<!-- disturbed stages: made by python -m tests.slow.statistics.disturbed_stages -->"
END = "<!-- end of disturbed stages -->"
# What a start loses, and what is seen of it, as a multiple of the limit; shape (2, blocks).
Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def _quiet(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    return np.zeros((2, blocks)), np.zeros((2, blocks))


def _noisy_arm(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    lost = np.zeros((2, blocks))
    lost[1] = generator.normal(scale=5 * SIGMA, size=blocks)
    return lost, np.zeros((2, blocks))


def _linear(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    """Half of the starts lose 3 to 12 %, by the cores that others use."""
    lost = generator.uniform(0.03, 0.12, (2, blocks)) * (generator.random((2, blocks)) < 0.5)
    return lost, lost / 0.03


def _heavy(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    """Two neighbours, always: starts are noisier, and one in twenty is slow; all look alike."""
    slow = generator.uniform(0.25, 0.45, (2, blocks)) * (generator.random((2, blocks)) < 0.05)
    return slow + generator.normal(scale=SIGMA / 2, size=(2, blocks)), np.full((2, blocks), 7.0)


def _bursts(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
    """One burst that lasts one to four starts, in a random order of the arms in each block."""
    starts = np.zeros(2 * blocks)
    first = int(generator.integers(0, 2 * blocks))
    starts[first : first + int(generator.integers(1, 5))] = generator.uniform(0.1, 0.4)
    lost = generator.permuted(starts.reshape(blocks, 2), axis=1).T
    return lost, np.where(lost > 0, 5.0, 0.0)


def _against(row: int) -> Draw:
    """Disturbances that are more frequent in one arm's starts: they lose 6 to 24 %."""

    def draw(generator: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
        share = np.full((2, 1), 0.1)
        share[row] = 0.6
        lost = generator.uniform(0.06, 0.24, (2, blocks)) * (generator.random((2, blocks)) < share)
        return lost, lost / 0.03

    return draw


KINDS: Mapping[str, Draw] = MappingProxyType(
    {
        "quiet": _quiet,
        "an arm five times as noisy": _noisy_arm,
        "half of the starts lose 3 to 12 %": _linear,
        "always busy, one start in twenty loses a third": _heavy,
        "one burst of 1 to 4 starts": _bursts,
        "the reference is disturbed more often": _against(0),
        "the arm is disturbed more often": _against(1),
    }
)


@dataclass(frozen=True)
class DisturbedStage:
    """Stages with one rival.

    Attributes:
        kind: What disturbs them, a key of KINDS.
        effect: The rival's true effect.
        labelled: Whether the stage knows which starts were disturbed.
        last: Blocks at most.
    """

    kind: str
    effect: float = Plan().least_effect
    labelled: bool = True
    last: int = 7

    def comparisons(self, stages: int = STAGES) -> list[Comparison]:
        """Return the rival's comparison in each of so many stages."""
        seed = [list(KINDS).index(self.kind), self.last, int(1e4 * (1 + self.effect))]
        generator = np.random.default_rng(seed)
        return [self._comparison(generator) for _ in range(stages)]

    def _comparison(self, generator: np.random.Generator) -> Comparison:
        lost, seen = KINDS[self.kind](generator, self.last)
        logs = generator.normal(scale=SIGMA, size=(2, self.last)) - lost
        logs += generator.normal(scale=DRIFT, size=self.last)
        logs[1] += math.log1p(self.effect)
        runs = dict(zip(("base", "arm"), np.exp(logs).tolist(), strict=True))
        disturbances = dict(zip(runs, seen.tolist(), strict=True)) if self.labelled else None
        prior = Noise.of_replicates(generator.normal(scale=SIGMA, size=NOISE_STARTS))
        return compare(runs, "base", Plan(last=self.last), prior, disturbances)["arm"]


def better(comparisons: list[Comparison]) -> float:
    """Return the share of stages that adopt the rival."""
    adopted = [part for part in comparisons if part.decision is Decision.BETTER]
    return len(adopted) / len(comparisons)


def worse(comparisons: list[Comparison]) -> float:
    """Return the share of stages that call the rival worse."""
    return len([part for part in comparisons if part.high < 0]) / len(comparisons)


def main() -> None:
    """Simulate, and write the table."""
    rows = []
    for kind in KINDS:
        shares = [
            better(DisturbedStage(kind).comparisons()),
            worse(DisturbedStage(kind, 0.0).comparisons()),
            better(DisturbedStage(kind, 0.12).comparisons()),
            worse(DisturbedStage(kind, -0.07).comparisons()),
        ]
        rows.append((kind, *(f"{share:.1%}" for share in shares)))
        print(*rows[-1], sep=" | ", flush=True)
    head = [
        "",
        "better by just `min_effect`: adopted",
        "equal: called worse",
        "+12 %: adopted",
        "-7 %: called worse",
    ]
    between(DOCUMENT, BEGIN, table(head, rows), END)


if __name__ == "__main__":
    main()

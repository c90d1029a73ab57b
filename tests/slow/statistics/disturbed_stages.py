"""Simulated stages on a machine that other processes use: how often they adopt an arm; makes a
table of the docs.

`python -m tests.slow.statistics.disturbed_stages` writes the table into bench/results/studies.md.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from loadgen.lab.study.plan.plan import NOISE_STARTS
from loadgen.stats.group_sequential import Decision, Plan, compare
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats
from tests.helpers.documents import between, table
from tests.slow.statistics.stages import DOCUMENT, DRIFT, SIGMA

STAGES = 10_000
LOST_CORES = 0.3, 1.2  # that a disturbed start could not use, evenly
LASTS = 2, 3, 7  # starts of each arm at most
BEGIN = "<!-- disturbed stages: made by python -m tests.slow.statistics.disturbed_stages -->"
END = "<!-- end of disturbed stages -->"


@dataclass(frozen=True)
class DisturbedStage:
    """Stages with one rival in which other processes disturb some starts.

    Attributes:
        disturbed: Share of the starts that are disturbed.
        losses: What a lost core costs the reference and the rival, as logarithms.
        effect: The rival's true effect.
        last: Blocks at most.
        busy_before: Whether the starts that showed the noise were disturbed as often; else none of
            them was.
    """

    disturbed: float
    losses: tuple[float, float]
    effect: float = Plan().least_effect
    last: int = 7
    busy_before: bool = True

    def starts(
        self, generator: np.random.Generator, shape: tuple[int, int], losses: Floats
    ) -> tuple[Floats, Floats]:
        """Return the logarithms of the values of starts, and the cores that each of them lost."""
        is_disturbed = generator.random(shape) < self.disturbed
        lost: Floats = np.where(is_disturbed, generator.uniform(*LOST_CORES, shape), 0.0)
        return generator.normal(scale=SIGMA, size=shape) - losses[:, None] * lost, lost

    def prior(self, generator: np.random.Generator) -> Noise:
        """Noise of the reference's starts before the stage, of the undisturbed ones if two are
        left.
        """
        if not self.busy_before:
            return Noise.of_replicates(generator.normal(scale=SIGMA, size=NOISE_STARTS))
        values, lost = self.starts(generator, (1, NOISE_STARTS), np.array(self.losses[:1]))
        undisturbed = values[lost == 0]
        return Noise.of_replicates(undisturbed if len(undisturbed) >= 2 else values[0])

    def adopts(self, generator: np.random.Generator, *, adjusted: bool = True) -> bool:
        """Return whether one stage adopts the rival.

        Args:
            generator: Random numbers.
            adjusted: Whether it knows which starts were disturbed.
        """
        values, lost = self.starts(generator, (2, self.last), np.array(self.losses))
        values += generator.normal(scale=DRIFT, size=self.last)
        values[1] += math.log1p(self.effect)
        runs = dict(zip(("base", "arm"), np.exp(values).tolist(), strict=True))
        disturbances = dict(zip(runs, lost.tolist(), strict=True)) if adjusted else None
        found = compare(runs, "base", Plan(last=self.last), self.prior(generator), disturbances)
        return found["arm"].decision is Decision.BETTER

    def adopting(self, stages: int = STAGES, *, adjusted: bool = True) -> float:
        """Return the share of stages that adopt the rival."""
        generator = np.random.default_rng(
            [self.last, int(100 * self.disturbed), int(100 * self.effect)]
        )
        return sum(self.adopts(generator, adjusted=adjusted) for _ in range(stages)) / stages


ROWS = {
    "3 of 10 starts disturbed, a lost core costs only the reference (40 %)": DisturbedStage(
        0.3, (0.5, 0.0)
    ),
    "the same, it costs both arms alike": DisturbedStage(0.3, (0.5, 0.5)),
    "7 of 10 starts disturbed, both arms alike": DisturbedStage(0.7, (0.5, 0.5)),
    "each start disturbed, both arms alike": DisturbedStage(1.0, (0.5, 0.5)),
    "the same, after a quiet noise step": DisturbedStage(1.0, (0.5, 0.5), busy_before=False),
    "3 of 10 starts disturbed, a lost core costs both arms 3 %, gain of 35 %": DisturbedStage(
        0.3, (0.03, 0.03), 0.35
    ),
    "7 of 10, the same": DisturbedStage(0.7, (0.03, 0.03), 0.35),
    "each start, the same": DisturbedStage(1.0, (0.03, 0.03), 0.35),
}


def main() -> None:
    """Simulate, and write the table."""
    rows = []
    for name, stage in ROWS.items():
        shares = [replace(stage, last=last).adopting() for last in LASTS]
        rows.append((name, *(f"{share:.1%}" for share in shares)))
        print(*rows[-1], sep=" | ", flush=True)
    head = ["adopted in", *(f"2 to {last} starts" if last > 2 else "2 starts" for last in LASTS)]
    between(DOCUMENT, BEGIN, table(head, rows), END)


if __name__ == "__main__":
    main()

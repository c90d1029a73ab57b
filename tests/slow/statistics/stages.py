"""Simulated stages: how often they adopt an arm that is no better, and how soon one that is; makes
a table of the docs.

`python -m tests.slow.statistics.stages` writes the table into bench/results/studies.md. The
decisions are those of `loadgen.stats.group_sequential.compare`, which looks after each block, as
a study does. The size of the noise matters only beside an effect, so that one is enough.
"""

from dataclasses import dataclass

import numpy as np

from loadgen.lab.study.plan.plan import NOISE_STARTS
from loadgen.stats.group_sequential import Comparison, Decision, Plan, compare
from loadgen.stats.variance import Noise
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

SIGMA = 0.012
DRIFT = 0.02  # of the machine, from block to block
STAGES = 20_000
FEWER = 4_000  # where the mean number of blocks is asked
DOCUMENT = ROOT / "bench" / "results" / "studies.md"
BEGIN, END = (
    "<!-- stages: made by python -m tests.slow.statistics.stages -->",
    "<!-- end of stages -->",
)
LATER_DF = 10  # of the noise that is known after some stages


@dataclass(frozen=True)
class Stage:
    """Stages of one kind.

    Attributes:
        effects: The true effect of each rival.
        plan: How it decides.
        sigma: Noise of one start, of all arms but the first rival.
        prior_df: Degrees of freedom of the noise that was measured before; 0: none was.
        ratio: The first rival's noise, as a multiple of the others'.
    """

    effects: tuple[float, ...]
    plan: Plan = Plan()
    sigma: float = SIGMA
    prior_df: int = NOISE_STARTS - 1
    ratio: float = 1.0

    def prior(self, generator: np.random.Generator) -> Noise | None:
        """Noise as it was measured before."""
        df = self.prior_df
        return Noise(self.sigma * float(np.sqrt(generator.chisquare(df) / df)), df) if df else None

    def runs(self, generator: np.random.Generator) -> dict[str, list[float]]:
        """The values of a stage in all blocks."""
        shape = len(self.effects) + 1, self.plan.last
        noise = generator.normal(scale=self.sigma, size=shape)
        noise[1] *= self.ratio
        noise += generator.normal(scale=DRIFT, size=self.plan.last)
        achieved = (1 + np.array([0.0, *self.effects]))[:, None] * np.exp(noise)
        return dict(
            zip(["base", *map(str, range(len(self.effects)))], achieved.tolist(), strict=True)
        )

    def decided(self, generator: np.random.Generator) -> dict[str, Comparison]:
        """One stage."""
        return compare(self.runs(generator), "base", self.plan, self.prior(generator))

    @property
    def generator(self) -> np.random.Generator:
        """Random numbers of its own."""
        seed = [
            len(self.effects),
            self.plan.last,
            self.prior_df,
            int(1e6 * self.effects[0]),
            int(10 * self.ratio),
        ]
        return np.random.default_rng(seed)


def adopting(stage: Stage, stages: int = STAGES) -> float:
    """Return the share of stages that adopt any arm."""
    generator = stage.generator
    found = (stage.decided(generator).values() for _ in range(stages))
    return sum(any(one.decision is Decision.BETTER for one in each) for each in found) / stages


def blocks(stage: Stage, stages: int = FEWER) -> float:
    """Return the mean number of blocks after which the first rival is decided."""
    generator = stage.generator
    return sum(stage.decided(generator)["0"].blocks for _ in range(stages)) / stages


def confirmed(stage: Stage, stages: int = STAGES) -> float:
    """Return the share of stages with one rival that adopt it, and of which a confirmation then
    does so too.
    """
    generator, count = stage.generator, 0
    for _ in range(stages):
        runs, prior = stage.runs(generator), stage.prior(generator)
        one = compare(runs, "base", stage.plan, prior)["0"]
        if one.decision is Decision.BETTER:
            own = Noise.of_layout(np.log([values[: one.blocks] for values in runs.values()]))
            known = Noise.pooled([each for each in (prior, own) if each is not None])
            count += (
                compare(stage.runs(generator), "base", stage.plan, known)["0"].decision
                is Decision.BETTER
            )
    return count / stages


def _rows() -> list[tuple[str, ...]]:
    least = Plan().least_effect
    rows = []
    for arms, last in ((1, 3), (1, 5), (1, 7), (3, 7), (6, 7)):
        stages = [
            Stage((least,) * arms, Plan(last=last), prior_df=df)
            for df in (NOISE_STARTS - 1, LATER_DF)
        ]
        starts = (
            f"{arms} rival{'s' * (arms > 1)}, 2 to {last} starts, each better by just `min_effect`"
        )
        rows.append((starts, *(f"adopts one in {adopting(stage):.1%}" for stage in stages)))
    for ratio in (2.0, 3.0, 5.0):
        cells = []
        for df in (NOISE_STARTS - 1, LATER_DF):
            stage = Stage((least,), prior_df=df, ratio=ratio)
            cells.append(f"adopts it in {adopting(stage):.1%}; confirmed in {confirmed(stage):.1%}")
        rows.append((f"the same, 1 rival, {ratio:g} times as noisy as all arms before it", *cells))
    for effect, sigma in ((0.5, 0.05), (0.7, 0.10), (0.15, 0.02)):
        plan = Plan(least_effect=0.05)
        found = [
            blocks(Stage((effect,), plan, sigma, df)) for df in (0, NOISE_STARTS - 1, LATER_DF)
        ]
        cells = [f"decided after {each:.1f} blocks on average" for each in found[1:]]
        cells[0] += f" ({found[0]:.1f} if each stage knew its own noise alone)"
        rows.append(
            (f"1 rival, better by {effect:.0%}, noise {sigma:.0%}, `min_effect` 5 %", *cells)
        )
    return rows


def main() -> None:
    """Simulate, and write the table."""
    head = ["stage", "as the first stage", f"as a later one ({LATER_DF} degrees of freedom)"]
    rows = _rows()
    for row in rows:
        print(*row, sep=" | ")
    between(DOCUMENT, BEGIN, table(head, rows), END)


if __name__ == "__main__":
    main()

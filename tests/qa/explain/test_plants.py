"""Planted causes of drawn sizes on the simulator: which one `explain` names first, with the stamps
of the requests alone.
"""

import itertools
import os
import random
from pathlib import Path

import pytest

from loadgen.explanation.causes import CAUSES
from loadgen.explanation.explainer import explain
from loadgen.metrics.records.file import RecordFile
from loadgen.report.result.explanation import Explanation
from tests.qa.explain.plants import BASE, NOTHING, Plant, drawn, run

SEED = int(os.environ.get("EXPLAIN_SEED", random.randrange(10_000)))
LEAST_FIRST, LEAST_QUIET, HEALTHY = 15, 19, 20
BASE_ERROR, PROMPT_ERROR = 0.03, 0.1
MINUTES = 60


def cost(plant: Plant, flag: str) -> float:
    """A cost of the simulator's step, by its flags; the last one counts."""
    words = [*BASE.split(), *plant.server.split()]
    return float([value for word, value in itertools.pairwise(words) if word == flag][-1])


def explained(plant: Plant, records: Path, seed: int) -> Explanation:
    run(plant, records, seed)
    explanation = explain(RecordFile(records), None)
    assert explanation is not None
    return explanation


@pytest.mark.timeout(20 * MINUTES)
def test_planted_causes_are_named_first_and_never_on_the_wrong_side(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    missed = {}
    for name, plant in drawn(SEED).items():
        explanation = explained(plant, tmp_path / f"{name}.jsonl", SEED)
        first = explanation.causes[0].name if explanation.causes else NOTHING
        print(name, plant.cause or "nothing", "->", first or explanation.answer)
        if first != plant.cause:
            missed[name] = first
        if first and plant.cause:
            sides = {CAUSES[first].side, CAUSES[plant.cause].side}
            assert sides != {"client", "server"}, name
        if (steps := explanation.steps) is not None:
            stream_ms = cost(plant, "--decode-us-per-seq") / 1e3
            base_ms = cost(plant, "--step-base-ms") + stream_ms
            assert steps.base_ms == pytest.approx(base_ms, rel=BASE_ERROR), name
            if steps.prompt_us is not None:
                prompt_us = cost(plant, "--prefill-us-per-token")
                assert steps.prompt_us == pytest.approx(prompt_us, rel=PROMPT_ERROR), name
    assert len(drawn(SEED)) - len(missed) >= LEAST_FIRST, missed


@pytest.mark.timeout(20 * MINUTES)
def test_nothing_is_named_of_healthy_servers(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    named = {}
    for seed in range(SEED, SEED + HEALTHY):
        explanation = explained(drawn(seed)["healthy"], tmp_path / f"{seed}.jsonl", seed)
        if explanation.causes:
            named[seed] = [cause.sentence for cause in explanation.causes]
    assert HEALTHY - len(named) >= LEAST_QUIET, named

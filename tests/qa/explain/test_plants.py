"""Planted causes of drawn sizes on the simulator: which one `explain` names first, by the stamps of
the requests alone, and by the server's words besides.
"""

import itertools
import os
import random
import re
from pathlib import Path

import pytest

from loadgen.explanation.causes import CAUSES
from loadgen.explanation.explainer import explain
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.result.explanation import Explanation
from tests.qa.explain.plants import BASE, NOTHING, Plant, drawn, pairs, run

SEED = int(os.environ.get("EXPLAIN_SEED", random.randrange(10_000)))
LEAST_FIRST, LEAST_WITH_SERVER, LEAST_QUIET, HEALTHY = 15, 16, 19, 20
SAID = re.compile(r',"server_times":\{[^}]*\}')
BASE_ERROR, PROMPT_ERROR = 0.03, 0.1
MINUTES = 60


def cost(plant: Plant, flag: str) -> float:
    """A cost of the simulator's step, by its flags; the last one counts."""
    words = [*BASE.split(), *plant.server.split()]
    return float([value for word, value in itertools.pairwise(words) if word == flag][-1])


def by_stamps(records: Path) -> Explanation:
    """Explain a run without what its server has said."""
    lines = records.read_text().splitlines()
    alone = records.with_suffix(".stamps.jsonl")
    alone.write_text("".join(f"{SAID.sub('', line)}\n" for line in lines))
    return by_all(RecordFile(alone), None)


def by_all(records: RecordFile, telemetry: Telemetry | None) -> Explanation:
    explanation = explain(records, telemetry)
    assert explanation is not None
    return explanation


def check_side(plant: Plant, explanation: Explanation) -> None:
    """The client is never named for the server, nor the server for the client."""
    if explanation.causes and plant.cause:
        first = explanation.causes[0]
        assert {first.side, CAUSES[plant.cause].side} != {"client", "server"}, first.sentence


def check_costs(plant: Plant, explanation: Explanation) -> None:
    """What is said of a step is near to what the simulator was told."""
    if (steps := explanation.steps) is not None:
        base_ms = cost(plant, "--step-base-ms") + cost(plant, "--decode-us-per-seq") / 1e3
        assert steps.base_ms == pytest.approx(base_ms, rel=BASE_ERROR), plant
        if steps.prompt_us is not None:
            prompt_us = cost(plant, "--prefill-us-per-token")
            assert steps.prompt_us == pytest.approx(prompt_us, rel=PROMPT_ERROR), plant


@pytest.mark.timeout(20 * MINUTES)
def test_planted_causes_are_named_first_and_never_on_the_wrong_side(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    missed: dict[str, list[str]] = {"stamps": [], "server": []}
    plants = drawn(SEED)
    for name, plant in plants.items():
        records = tmp_path / f"{name}.jsonl"
        run(plant, records, SEED)
        file = RecordFile(records)
        assert file.trailer is not None
        found = {"stamps": by_stamps(records), "server": by_all(file, file.trailer.telemetry)}
        for level, explanation in found.items():
            first = explanation.causes[0].name if explanation.causes else NOTHING
            print(level, name, plant.cause or "nothing", "->", first or explanation.answer)
            check_side(plant, explanation)
            check_costs(plant, explanation)
            if not (first == plant.cause or (plant.cause == "front" and "front" in first)):
                missed[level].append(f"{name}: {first}")
    assert len(plants) - len(missed["stamps"]) >= LEAST_FIRST, missed
    assert len(plants) - len(missed["server"]) >= LEAST_WITH_SERVER, missed


@pytest.mark.timeout(20 * MINUTES)
def test_nothing_is_named_of_healthy_servers(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    named = {}
    for seed in range(SEED, SEED + HEALTHY):
        records = tmp_path / f"{seed}.jsonl"
        run(drawn(seed)["healthy"], records, seed)
        explanation = by_stamps(records)
        if explanation.causes:
            named[seed] = [cause.sentence for cause in explanation.causes]
    assert HEALTHY - len(named) >= LEAST_QUIET, named


@pytest.mark.timeout(20 * MINUTES)
def test_two_causes_are_both_named(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    missed = {}
    for name, plant in pairs(SEED).items():
        records = tmp_path / f"{name.replace(' ', '-')}.jsonl"
        run(plant, records, SEED)
        named = [cause.name for cause in by_stamps(records).causes]
        print(name, "->", named)
        if not {*plant.cause.split()} <= {*named}:
            missed[name] = named
    assert len(missed) <= 1, missed

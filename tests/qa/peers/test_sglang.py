"""SGLang's own `bench_serving`: the recorded bodies are its own, and its figures are those of
loadgen.
"""

import json
from pathlib import Path

import pytest

from bench.engines.environments import CannotBeMade, made
from bench.peers import recipes
from bench.peers.agreement import DISAGREE, rows
from bench.peers.compare_sglang import METRICS, turns
from bench.peers.sglang_bodies import sent
from tests.helpers.sglang_cases import CASES, RECORDED

pytestmark = pytest.mark.timeout(1800)  # installs the tool once


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return made(recipes.sglang, recipes.FOLDER)
    except CannotBeMade as error:
        pytest.skip(f"SGLang cannot be installed: {error}")


@pytest.mark.parametrize("case", CASES)
async def test_recorded_bodies_are_those_that_it_sends(
    case: str, programs: Path, tmp_path: Path
) -> None:
    assert await sent(case, tmp_path) == json.loads(RECORDED.read_text())["bodies"][case]


def test_figures_of_the_same_meaning_agree(programs: Path) -> None:
    theirs, ours = turns(programs, rounds=3)
    compared = {row.metric.key: row for row in rows(METRICS, theirs, ours)}
    assert compared["completed"].ours == 60
    assert {key: row.cells for key, row in compared.items() if row.judgement == DISAGREE} == {}

"""SGLang's own `bench_serving`: the recorded bodies are its own, and its figures are those of loadgen."""

import json
from pathlib import Path

import pytest

from tests.helpers.sglang_cases import CASES, RECORDED
from tests.qa.engines.environments import CannotBeMade, made
from tests.qa.peers import recipes
from tests.qa.peers.agreement import DISAGREE, rows
from tests.qa.peers.compare_sglang import METRICS, turns
from tests.qa.peers.sglang_bodies import sent

pytestmark = pytest.mark.timeout(1800)  # installs the tool once


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return made(recipes.sglang, recipes.FOLDER)
    except CannotBeMade as error:
        pytest.skip(f"SGLang cannot be installed: {error}")


@pytest.mark.parametrize("case", CASES)
async def test_recorded_bodies_are_those_that_it_sends(case: str, programs: Path, tmp_path: Path) -> None:
    assert await sent(case, tmp_path) == json.loads(RECORDED.read_text())["bodies"][case]


def test_figures_of_the_same_meaning_agree(programs: Path) -> None:
    theirs, ours = turns(programs, rounds=3)
    compared = {row.metric.key: row for row in rows(METRICS, theirs, ours)}
    assert compared["completed"].ours == 60
    assert {key: row.cells for key, row in compared.items() if row.judgement == DISAGREE} == {}

"""The benchmark of prompts makes what was asked and reports it; its speed is not tested."""

import json
from pathlib import Path

import pytest

from bench.performance import sharegpt_file
from bench.performance.prompt_speed import QUICK, Findings, measure_all, report
from bench.performance.prompt_ways import WAYS
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


@pytest.fixture(scope="module")
def found() -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", "")  # the bench sets its own
        return measure_all(QUICK, SIMULATOR)


def test_every_way_is_gone_in_every_round(found: Findings) -> None:
    assert found.took.keys() == WAYS.keys() | {"cold"}
    for taken in (taken for way in found.took.values() for taken in way):
        assert taken.seconds > 0
        assert taken.own_mb > 0


def test_random_prompts_have_the_tokens_asked(found: Findings) -> None:
    (ours,), (prepared,) = found.took["exact_words"], found.took["prepared"]
    assert ours.tokens == prepared.tokens == QUICK.random * (QUICK.tokens + 1)


def test_conversations_have_equal_tokens_on_every_path(found: Findings) -> None:
    tokens = {taken.tokens for way in ("sampled", "cold", "loaded") for taken in found.took[way]}
    assert len(tokens) == 1


def test_the_table_has_a_value_in_every_row(found: Findings) -> None:
    rows = [line.split("|") for line in report(found).splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 12
    assert all(float(cells[2].replace(",", "")) > 0 for cells in rows)


def test_the_file_is_of_the_size_and_always_the_same(tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        count = sharegpt_file.write(tmp_path / "file.json", 100_000)
        contents.append((tmp_path / "file.json").read_bytes())
        entries = json.loads(contents[-1])
        assert len(entries) == len({entry["id"] for entry in entries}) == count
    assert contents[0] == contents[1]
    assert 100_000 <= len(contents[0]) < 150_000

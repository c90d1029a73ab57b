"""Both tools get the same flags, and loadgen takes them as they are."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.peers.compare_vllm import Pair, Scenario, common, scenarios, write_prompts
from bench.peers.peer import words
from loadgen.engines import Server
from tests.helpers.command_line import TOKENIZER, loadgen
from tests.helpers.sim_server import simulated


def test_loadgen_carries_out_what_vllm_is_told(tmp_path: Path) -> None:
    write_prompts(TOKENIZER, tmp_path, 8)
    scenario = next(each for each in scenarios(4) if each.chat)
    with simulated() as server:
        done = loadgen(
            "run",
            *common(server, TOKENIZER, tmp_path),
            *words(scenario.flags),
            "--quiet",
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    (saved,) = (
        path for path in tmp_path.glob("*.json") if "loadgen" in json.loads(path.read_text())
    )
    assert json.loads(saved.read_text())["completed"] == 4


def test_prompts_have_various_lengths_so_that_another_order_shows(tmp_path: Path) -> None:
    write_prompts(TOKENIZER, tmp_path, 20)
    rows = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    assert len({row["input_tokens"] for row in rows}) > 10


def test_other_prompts_or_another_order_are_refused(tmp_path: Path) -> None:
    pair = Pair(cast(Server, SimpleNamespace()), Path(), TOKENIZER, tmp_path)
    plain, chat = Scenario("plain", {}), Scenario("chat", {}, chat=True)
    pair.same_prompts(plain, [3, 4])
    pair.same_prompts(plain, [3, 4])
    pair.same_prompts(chat, [11, 12])  # counted with the template
    with pytest.raises(RuntimeError, match="did not send the same prompts"):
        pair.same_prompts(plain, [4, 3])

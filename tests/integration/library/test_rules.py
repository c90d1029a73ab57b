"""A run by another tool's rule sends what that tool sends, and its result names the rule."""

import json
from pathlib import Path

import loadgen
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


async def test_a_run_by_the_rule_of_benchmark_runner_gets_every_recorded_length(
    tmp_path: Path,
) -> None:
    turns = [
        {"from": "human", "value": "a question"},
        {"from": "gpt", "value": " ".join(["word"] * 7)},
    ]
    path = tmp_path / "sharegpt.json"
    path.write_text(
        json.dumps([{"id": str(number), "conversations": turns} for number in range(3)])
    )
    settings = loadgen.RunSettings(
        engine="sim",
        dataset_name="sharegpt",
        dataset_path=str(path),
        dataset_rule="benchmark-runner",
        tokenizer=str(SIMULATOR),
        num_prompts=3,
    )
    result = await loadgen.run(settings)
    provenance = result.data["loadgen"]["provenance"]
    assert result.data["total_output_tokens"] == 3 * 7
    assert (
        provenance["prompts"]["rule"] == provenance["asked"]["dataset_rule"] == "benchmark-runner"
    )
    assert provenance["settings"]["ignore_eos"]
    assert "ignore_eos" not in provenance["asked"]

"""Runs whose data set decides how many requests there are."""

import json

import loadgen
from loadgen import RunSettings
from tests.helpers.sim_server import simulated
from tests.workload.test_random_words import SIMULATOR


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


async def sent(server, **settings):
    """The number of requests that a run has sent and that were answered."""
    given = {"base_url": server.base_url, "tokenizer": str(SIMULATOR)} | settings
    result = await loadgen.run(RunSettings(**given))
    assert result.data["num_prompts"] == result.data["completed"]
    return result.data["completed"]


async def test_run_ends_with_the_prompts_of_its_file(tmp_path):
    rows = [
        {"turns": [f"Tell me of boat {number}."], "category": ["a", "b"][number % 2]}
        for number in range(7)
    ]
    spec = {
        "dataset_name": "spec_bench",
        "dataset_path": written(tmp_path / "question.jsonl", rows),
        "hf_output_len": 2,
    }
    trace = [
        {"timestamp": 5.0 * number, "input_length": 9, "output_length": 2} for number in range(4)
    ]
    at_a_rate = {"dataset_name": "trace", "dataset_path": written(tmp_path / "trace.jsonl", trace)}
    with simulated() as server:
        assert await sent(server, **spec, num_prompts=-1, max_concurrency=2) == 7
        assert await sent(server, **spec, num_prompts=-1, hf_where=("category=b",)) == 3
        assert await sent(server, **spec, num_prompts=50, no_oversample=True) == 7
        assert await sent(server, **spec, num_prompts=9) == 9
        assert await sent(server, **at_a_rate, trace_times="ignore", request_rate=200.0) == 4

"""inference-perf."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.peers import recipes
from bench.peers.peer import MODEL, PROMPT_TOKENS, Reported, Task, percentiles

PLACES = {50: "median", 99: "p99"}
MS_PER_S = 1e3
IN_FLIGHT = 5000  # of a worker; its own limit of 100 makes it a closed loop


class InferencePerf:
    """See `Peer`."""

    name = "inference-perf"
    recipe = recipes.inference_perf
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": "1"}
    poisson = False
    settings = (
        "`data.type: random`, which it has for completions alone; "
        f"`worker_max_concurrency: {IN_FLIGHT}`"
    )

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        load = task.load
        lengths = {
            name: {
                "min": tokens,
                "max": tokens,
                "mean": tokens,
                "std_dev": 0,
                "total_count": load.count,
            }
            for name, tokens in (
                ("input_distribution", PROMPT_TOKENS),
                ("output_distribution", load.tokens),
            )
        }
        stage = {"rate": load.rate, "duration": load.count // load.rate}
        config = {
            "api": {"type": "completion", "streaming": True},
            "server": {
                "type": "vllm",
                "model_name": MODEL,
                "base_url": task.url,
                "ignore_eos": True,
            },
            "tokenizer": {"pretrained_model_name_or_path": str(task.tokenizer)},
            "data": {"type": "random", **lengths},
            "load": {"type": "constant", "stages": [stage], "worker_max_concurrency": IN_FLIGHT},
            "storage": {"local_storage": {"path": str(task.folder)}},
        }
        path = task.folder / "asked.yml"
        path.write_text(json.dumps(config))  # JSON is YAML
        return [str(task.programs / "inference-perf"), "--config_file", str(path)]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        found = json.loads((folder / "stage_0_lifecycle_metrics.json").read_text())
        sent, good = found["load_summary"], found["successes"]
        keys = {
            "ttft": "time_to_first_token",
            "itl": "inter_token_latency",
            "tpot": "time_per_output_token",
        }
        times = {
            name: percentiles(good["latency"][key], PLACES, MS_PER_S) for name, key in keys.items()
        }
        says = f"asked {sent['requested_rate']:,.0f}/s, achieved {sent['achieved_rate']:,.0f}/s"
        return Reported(round(good["output_tokens"]["total"]), times, says)

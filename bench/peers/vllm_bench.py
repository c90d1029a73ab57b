"""`vllm bench serve`, from the distribution of vLLM."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.peers import recipes
from bench.peers.peer import METRICS, MODEL, PERCENTILES, PROMPT_TOKENS, SEED, Reported, Task, words
from bench.performance.load import CHAT

RESULT = "vllm.json"
SETTINGS = "`--dataset-name random --burstiness inf --ignore-eos`"


class VllmBench:
    """See `Peer`."""

    name = "vllm bench serve"
    recipe = recipes.vllm
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    poisson = False
    settings = SETTINGS

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        return [str(task.programs / "vllm"), "bench", "serve", *flags(task)]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        return read(json.loads((folder / RESULT).read_text()))


def flags(task: Task) -> list[str]:
    """The flags that carry a task out: those of vLLM's clients, in Python and in Rust, and
    loadgen's.
    """
    load = task.load
    named = {
        "--backend": load.backend,
        "--base-url": task.url,
        "--endpoint": "/v1/chat/completions" if load.backend == CHAT else "/v1/completions",
        "--model": MODEL,
        "--tokenizer": task.tokenizer,
        "--dataset-name": "random",
        "--random-input-len": PROMPT_TOKENS,
        "--random-output-len": load.tokens,
        "--num-prompts": load.count,
        "--request-rate": load.rate,
        "--burstiness": "inf",
        "--seed": SEED,
        **({"--max-concurrency": load.streams} if load.streams else {}),
        "--percentile-metrics": ",".join(METRICS),
        "--metric-percentiles": ",".join(map(str, PERCENTILES)),
        "--result-dir": task.folder,
        "--result-filename": RESULT,
    }
    return [*words(named), "--ignore-eos", "--disable-tqdm", "--save-result"]


def read(result: Mapping[str, Any]) -> Reported:
    """A result with vLLM's keys."""
    times = {name: {p: float(result[f"p{p}_{name}_ms"]) for p in PERCENTILES} for name in METRICS}
    return Reported(result["total_output_tokens"], times)

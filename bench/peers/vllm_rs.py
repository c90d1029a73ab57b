"""`vllm-rs bench serve`, the Rust client out of the distribution of vLLM."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.peers import recipes, vllm_bench
from bench.peers.peer import Reported, Task


class VllmRs:
    """See `Peer`."""

    name = "vllm-rs bench serve"
    recipe = recipes.vllm_rs
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    poisson = False
    settings = vllm_bench.SETTINGS

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        return [str(task.programs / "vllm-rs"), "bench", "serve", *vllm_bench.flags(task)]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        return vllm_bench.read(json.loads((folder / vllm_bench.RESULT).read_text()))

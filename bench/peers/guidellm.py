"""guidellm."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.peers import recipes
from bench.peers.peer import MODEL, PROMPT_TOKENS, SEED, Reported, Task, percentiles, words

RESULT = "guidellm.json"
PLACES = {50: "p50", 99: "p99"}


class GuideLLM:
    """See `Peer`."""

    name = "guidellm"
    recipe = recipes.guidellm
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": "1"}
    poisson = False
    settings = "`--profile kind=constant --data kind=synthetic_text`; workers as it chooses"

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        load = task.load
        flags = {
            "--backend": f"kind=openai_http,target={task.url},model={MODEL},validate_backend=false",
            "--tokenizer": f"kind=huggingface_auto,model={task.tokenizer}",
            "--profile": f"kind=constant,rate={load.rate}",
            "--constraint": f"kind=max_requests,count={load.count}",
            "--data": (
                f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={load.tokens}"
            ),
            "--seed": f"kind=static,value={SEED}",
            "--output": f"kind=json,path={task.folder / RESULT}",
        }
        return [str(task.programs / "guidellm"), "run", *words(flags), "--disable-progress"]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`; its inter-token latency is one mean for each request, which is called TPOT
        elsewhere.
        """
        (benchmark,) = json.loads((folder / RESULT).read_text())["benchmarks"]
        metrics = benchmark["metrics"]
        keys = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}
        times = {
            name: percentiles(metrics[key]["successful"]["percentiles"], PLACES)
            for name, key in keys.items()
        }
        tokens = round(metrics["output_token_count"]["successful"]["total_sum"])
        return Reported(tokens, times, "; ".join(each["message"] for each in benchmark["warnings"]))

"""evalscope perf."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.peers import recipes
from bench.peers.peer import MODEL, PROMPT_TOKENS, SEED, Reported, Task, percentiles, words

NAMES = {"ttft": "TTFT (ms)", "itl": "ITL (ms)", "tpot": "TPOT (ms)"}
PLACES = {50: "50%", 99: "99%"}


class EvalScope:
    """See `Peer`."""

    name = "evalscope"
    recipe = recipes.evalscope
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": "1"}
    poisson = True
    settings = "`perf --open-loop --dataset random --stream`, whose arrivals are Poisson's"

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        load = task.load
        flags = {
            "--url": f"{task.url}/v1/chat/completions",
            "--api": "openai",
            "--model": MODEL,
            "--tokenizer-path": task.tokenizer,
            "--dataset": "random",
            "--min-prompt-length": PROMPT_TOKENS,
            "--max-prompt-length": PROMPT_TOKENS,
            "--max-tokens": load.tokens,
            "--number": load.count,
            "--rate": load.rate,
            "--seed": SEED,
            "--outputs-dir": task.folder,
        }
        switches = ["--open-loop", "--stream", "--no-test-connection", "--no-timestamp"]
        return [str(task.programs / "evalscope"), "perf", *words(flags), *switches]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        (path,) = folder.rglob("benchmark_percentile.json")
        rows = {row["Percentiles"]: row for row in json.loads(path.read_text())}
        summary = json.loads(path.with_name("benchmark_summary.json").read_text())
        times = {
            name: percentiles({place: rows[place][key] for place in PLACES.values()}, PLACES)
            for name, key in NAMES.items()
        }
        return Reported(round(summary["Avg Output Tokens"] * summary["Success Requests"]), times)

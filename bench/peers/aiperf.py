"""AIPerf."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.peers import recipes
from bench.peers.peer import MODEL, PROMPT_TOKENS, SEED, Reported, Task, counted, percentiles, words

PLACES = {50: "p50", 99: "p99"}
LOOP, BUSY = r"WARNING.*Event loop .* too long", r"WARNING.*CPU usage for .* may be inaccurate"


class AIPerf:
    """See `Peer`."""

    name = "AIPerf"
    recipe = recipes.aiperf
    # Told to be offline it takes a local folder for the name of a repository.
    env: Mapping[str, str] = {"HF_HUB_OFFLINE": ""}
    poisson = False
    settings = (
        "`--endpoint-type chat --streaming --arrival-pattern constant`; workers as it chooses"
    )

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        load = task.load
        flags = {
            "--model": MODEL,
            "--tokenizer": task.tokenizer,
            "--url": task.url,
            "--endpoint-type": "chat",
            "--isl": PROMPT_TOKENS,
            "--isl-stddev": 0,
            "--osl": load.tokens,
            "--request-rate": load.rate,
            "--arrival-pattern": "constant",
            "--request-count": load.count,
            "--num-dataset-entries": load.count,
            "--random-seed": SEED,
            "--ui": "none",
            "--artifact-dir": task.folder,
        }
        return [
            str(task.programs / "aiperf"),
            "profile",
            *words(flags),
            "--streaming",
            "--no-server-metrics",
            "--no-gpu-telemetry",
        ]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`; its inter-token latency is one mean for each request, its chunk latency
        the gaps.
        """
        found = json.loads((folder / "profile_export_aiperf.json").read_text())
        keys = {
            "ttft": "time_to_first_token",
            "itl": "inter_chunk_latency",
            "tpot": "inter_token_latency",
        }
        times = {
            name: percentiles(found[key], PLACES) for name, key in keys.items() if key in found
        }
        log = (folder / "logs" / "aiperf.log").read_text(errors="replace")
        warned = {
            "event loop took too long": counted(LOOP, log),
            "CPU usage is high": counted(BUSY, log),
        }
        says = ", ".join(
            f"{count} x {what} (in its log)" for what, count in warned.items() if count
        )
        return Reported(round(found["total_output_tokens"]["avg"]), times, says)

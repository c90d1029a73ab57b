"""SGLang's `bench_serving` and `loadgen run --compat sglang` side by side on the simulator; `make
compare-sglang`.

Both are given the same flags, in turn and several times. Exit code 1: figures that mean the same do
not agree.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.engines.environments import made
from bench.peers import recipes
from bench.peers.agreement import ACTIVE, DISAGREE, SECONDS, Kept, Metric, Row, rows, verdict_text
from bench.peers.compare_vllm import offline
from bench.peers.meter import metered
from bench.peers.peer import words
from bench.peers.quiet import DISTURBED_S, all_disturbed
from bench.peers.sglang_bodies import command
from bench.table import figure
from loadgen.util import machine
from tests.helpers.command_line import LOADGEN
from tests.helpers.documents import between, table
from tests.helpers.sglang_cases import write_files
from tests.helpers.sim_server import simulated
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench/results/peers.md"
BEGIN, END = (
    "<!-- sglang: written by make compare-sglang FLAGS=--write -->",
    "<!-- end of sglang -->",
)
STEP_MS, MAX_S = 20, 120.0
FLAGS = {"--sharegpt-output-len": 16, "--num-prompts": 60, "--max-concurrency": 4, "--seed": 42}
CONNECTS = "a new connection for each request there, one that is open here"
STAMPS = "when Python reads an event there, when the kernel got it here"
LATENCIES = {  # with the reason why they differ: of all statistics, or of the tail
    "ttft": ("TTFT", CONNECTS, CONNECTS),
    "tpot": ("TPOT", "", STAMPS),
    "itl": ("ITL", "", STAMPS),
    "e2e_latency": ("E2EL", CONNECTS, CONNECTS),
}
METRICS = (
    Metric("completed", "successful requests"),
    Metric("total_input_tokens", "input tokens"),
    Metric("total_output_tokens", "output tokens"),
    Metric("duration", "duration (s)"),
    Metric("request_throughput", "requests/s"),
    Metric("input_throughput", "input tokens/s"),
    Metric("output_throughput", "output tokens/s"),
    Metric("total_throughput", "all tokens/s"),
    Metric("concurrency", "mean concurrency"),
    Metric("max_output_tokens_per_s", "peak output tokens/s", SECONDS),
    Metric("max_concurrent_requests", "peak concurrent requests", ACTIVE),
    *(
        Metric(
            f"{statistic}_{key}_ms",
            f"{statistic} {name} (ms)",
            middle if statistic in ("mean", "median") else tail,
        )
        for key, (name, middle, tail) in LATENCIES.items()
        for statistic in ("mean", "median", "std", "p90", "p95", "p99")
    ),
)


def turns(programs: Path, rounds: int) -> tuple[list[Kept], list[Kept]]:
    """The runs of both tools, SGLang's first; in every second round loadgen begins."""
    heads = {
        "sglang": command(programs),
        "loadgen": [*LOADGEN, "run", "--compat", "sglang", "--quiet"],
    }
    runs: dict[str, list[Kept]] = {tool: [] for tool in heads}
    with (
        tempfile.TemporaryDirectory(prefix="loadgen-peers-") as name,
        simulated(
            "sim", step_base_ms=STEP_MS, decode_us_per_seq=0, prefill_us_per_token=0
        ) as server,
    ):
        write_files(Path(name), talks=FLAGS["--num-prompts"])
        for number in range(rounds):
            for tool in list(heads)[:: -1 if number % 2 else 1]:
                print(f"round {number + 1}: {tool}", file=sys.stderr, flush=True)
                runs[tool].append(_run(tool, heads[tool], server.base_url, Path(name)))
    return runs["sglang"], runs["loadgen"]


def _run(tool: str, head: Sequence[str], url: str, folder: Path) -> Kept:
    written = folder / f"{tool}.jsonl"
    written.unlink(missing_ok=True)
    told = {"--backend": "sglang", "--base-url": url, "--model": "sim", "--tokenizer": folder}
    told |= {
        "--dataset-name": "sharegpt",
        "--dataset-path": folder / "talks.json",
        "--output-file": written,
    }
    line = [*head, *words(told), *words(FLAGS), "--disable-tqdm"]
    cost, said = metered(line, folder=folder, env=offline(), timeout_s=MAX_S, name=tool)
    if cost.code:
        raise RuntimeError(f"{' '.join(line)} ended with {cost.code}: {said[-2000:]}")
    result = json.loads(written.read_text())
    numbers = {key: float(value) for key, value in result.items() if isinstance(value, int | float)}
    return Kept(
        numbers,
        max(0.0, cost.elsewhere_s),
        verdict_text(result["loadgen"]) if "loadgen" in result else "",
    )


def section(compared: Sequence[Row], theirs: Sequence[Kept], ours: Sequence[Kept]) -> str:
    """What the page and the console show."""
    about = machine.describe()
    heading = (
        f"{time.strftime('%Y-%m-%d')}, SGLang {recipes.version(recipes.sglang)}, {about['cpu']}, "
        f"{about['usable_cores']} cores for server and client. {len(theirs)} runs of each tool, in "
        f"turn, with `{' '.join(words(FLAGS))}`. Medians are of runs beside which others used at "
        f"most {DISTURBED_S:g} CPU "
        f"s{', or of all where none was' if all_disturbed(theirs) or all_disturbed(ours) else ''}."
    )
    head = ("", "bench_serving", "loadgen", "loadgen - SGLang", "definitions")
    others = "; ".join(
        f"{name} {', '.join(figure(run.others_s) for run in runs)}"
        for name, runs in (("SGLang", theirs), ("loadgen", ours))
    )
    says = "; ".join(run.says for run in ours)
    below = f"CPU s of others: {others}. loadgen says {says}."
    return "\n\n".join((heading, table(head, (row.cells for row in compared)), below))


def main() -> int:
    """Compare; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers.compare_sglang", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often the tools take turns (5)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    # As Ctrl-C: server and clients are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    theirs, ours = turns(made(recipes.sglang, recipes.FOLDER), options.rounds)
    compared = rows(METRICS, theirs, ours)
    text = section(compared, theirs, ours)
    print(text)
    if options.write:
        between(DOCUMENT, BEGIN, text, END)
    return int(any(row.judgement == DISAGREE for row in compared))


if __name__ == "__main__":
    sys.exit(main())

"""`vllm bench serve` and `loadgen run` side by side on one real vLLM server; `make compare-vllm`
runs this.

Both are given the same flags, in turn and several times. Exit code 1: figures that mean the same do
not agree.
"""

import argparse
import hashlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines import recipes as real_recipes
from bench.engines.engines import vllm_on_cpu
from bench.engines.environments import made
from bench.peers.agreement import DISAGREE, Kept, Row, kept, metrics, rows
from bench.peers.meter import Metered, metered
from bench.peers.peer import words
from bench.peers.quiet import DISTURBED_S, all_disturbed, quiet
from bench.table import figure
from loadgen.engines import Server
from loadgen.engines.launch.processes import family, family_cpu_s
from loadgen.util import machine
from tests.helpers.command_line import LOADGEN, environment
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT
from tests.integration.commands.migrating import releases

DOCUMENT = ROOT / "bench/results/peers.md"
BEGIN, END = "<!-- vllm: written by make compare-vllm FLAGS=--write -->", "<!-- end of vllm -->"
INPUT_TOKENS, OUTPUT_TOKENS, SEED = 64, 32, 42
MAX_S = 400.0
PROMPTS_SCRIPT, FLAGS_SCRIPT = (
    Path(__file__).with_name(f"vllm_{what}.py") for what in ("prompts", "flags")
)
Flags = dict[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What both tools are asked to do.

    Attributes:
        name: In the text.
        flags: Of both.
        chat: Whether it asks the chat endpoint.
        judged: Whether their latencies must agree.
    """

    name: str
    flags: Flags
    chat: bool = False
    judged: bool = True


def scenarios(count: int) -> list[Scenario]:
    """All of them, with so many requests each."""
    low: Flags = {"--num-prompts": count, "--request-rate": 4, "--burstiness": "inf"}
    cap: Flags = {
        "--num-prompts": 2 * count,
        "--request-rate": 40,
        "--burstiness": "inf",
        "--max-concurrency": 4,
    }
    plain: Flags = {"--backend": "openai", "--endpoint": "/v1/completions"}
    chat: Flags = {"--backend": "openai-chat", "--endpoint": "/v1/chat/completions"}
    return [
        Scenario("Completions at low load, 4 requests/s", plain | low),
        Scenario("Chat at low load, 4 requests/s", chat | low, chat=True),
        Scenario("Completions, 40 requests/s under a cap of 4", plain | cap, judged=False),
    ]


@dataclass(frozen=True)
class Pair:
    """Both tools, and the server that they measure."""

    server: Server
    programs: Path
    tokenizer: str
    folder: Path

    def turns(self, scenario: Scenario, rounds: int) -> tuple[list[Kept], list[Kept]]:
        """Their runs of a scenario, vLLM's first; in every second round loadgen begins."""
        runs: dict[str, list[Kept]] = {"vllm": [], "loadgen": []}
        for number in range(rounds):
            for tool in list(runs)[:: -1 if number % 2 else 1]:
                print(f"{scenario.name}, round {number + 1}: {tool}", file=sys.stderr, flush=True)
                runs[tool].append(self._run(tool, scenario))
        return runs["vllm"], runs["loadgen"]

    def _run(self, tool: str, scenario: Scenario) -> Kept:
        written = self.folder / f"{tool}.json"
        more = ["--result-dir", str(self.folder), "--result-filename", written.name]
        command = [
            *self._head(tool),
            *common(self.server, self.tokenizer, self.folder),
            *more,
            *words(scenario.flags),
        ]
        before_s = family_cpu_s(family([self.server.pid]))
        cost, said = metered(command, folder=self.folder, env=offline(), timeout_s=MAX_S, name=tool)
        server_s = family_cpu_s(family([self.server.pid])) - before_s
        others_s = max(0.0, cost.elsewhere_s - server_s)
        if cost.code:
            raise RuntimeError(f"{' '.join(command)} ended with {cost.code}: {said[-2000:]}")
        result = json.loads(written.read_text())
        self.same_prompts(scenario, result["input_lens"])
        return kept(result, others_s)

    def _head(self, tool: str) -> list[str]:
        theirs = [str(self.programs / "vllm"), "bench", "serve", "--skip-chat-template"]
        return theirs if tool == "vllm" else [*LOADGEN, "run"]

    def same_prompts(self, scenario: Scenario, lengths: Sequence[int]) -> None:
        """Hold the lengths that the server has counted, request by request, against those of the
        other tool's runs.
        """
        place = self.folder / f"lengths-{'chat' if scenario.chat else 'plain'}-{len(lengths)}.json"
        if not place.exists():
            place.write_text(json.dumps(lengths))
        if json.loads(place.read_text()) != lengths:
            raise RuntimeError(
                f"{scenario.name}: the two tools did not send the same prompts in the same order"
            )


def common(server: Server, tokenizer: str, folder: Path) -> list[str]:
    """The flags of both tools in all scenarios."""
    told: Flags = {
        "--base-url": server.base_url,
        "--model": server.model,
        "--tokenizer": tokenizer,
        "--dataset-name": "custom",
        "--dataset-path": str(folder / "prompts.jsonl"),
        "--custom-output-len": OUTPUT_TOKENS,
        "--seed": SEED,
        "--temperature": 0,
        "--percentile-metrics": "ttft,tpot,itl,e2el",
        "--metric-percentiles": "90,99",
    }
    return [*words(told), "--ignore-eos", "--disable-tqdm", "--save-result", "--save-detailed"]


def offline() -> dict[str, str]:
    """The environment in which no tool asks the hub."""
    return environment() | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def write_prompts(tokenizer: str, folder: Path, count: int) -> None:
    """Prompts of one length in words, of various lengths in tokens, for both tools."""
    flags: Flags = {
        "--tokenizer": tokenizer,
        "--num-prompts": count,
        "--seed": SEED,
        "--random-output-len": OUTPUT_TOKENS,
    }
    flags |= {"--random-input-len": f"{INPUT_TOKENS // 2}:{INPUT_TOKENS * 3 // 2}"}
    command = [*LOADGEN, "dataset", *words(flags), "--export", str(folder / "prompts.jsonl")]
    cost, said = metered(command, folder=folder, env=offline(), timeout_s=MAX_S, name="prompts")
    if cost.code:
        raise RuntimeError(said)


def parsed_flags(programs: Path, folder: Path) -> list[str]:
    """Every flag that the parser of the installed `vllm bench serve` takes."""
    command = [str(programs / "python"), str(FLAGS_SCRIPT)]
    cost, said = metered(command, folder=folder, env=offline(), timeout_s=MAX_S, name="flags")
    if cost.code:
        raise RuntimeError(said)
    (line,) = (line for line in said.splitlines() if line.startswith("flags "))
    found: list[str] = json.loads(line.removeprefix("flags "))
    return found


def unknown(found: Sequence[str]) -> list[str]:
    """Flags of which docs/other-flags.md knows nothing, or that it takes for those of this release
    and are none.
    """
    return sorted(set(found) ^ set(releases("vllm")[real_recipes.VLLM]))


def random_alike(programs: Path, tokenizer: str, folder: Path, count: int) -> int:
    """How many of vLLM's own random prompts are the same, one by one, by --dataset-rule
    vllm-0.11.
    """
    flags: Flags = {
        "--tokenizer": tokenizer,
        "--num-prompts": count,
        "--seed": SEED,
        "--dataset-rule": "vllm-0.11",
    }
    flags |= {"--random-input-len": INPUT_TOKENS, "--export": str(folder / "random.jsonl")}
    theirs = [
        str(programs / "python"),
        str(PROMPTS_SCRIPT),
        tokenizer,
        *map(str, (SEED, count, INPUT_TOKENS)),
    ]
    ran: list[tuple[Metered, str]] = [
        metered(command, folder=folder, env=offline(), timeout_s=MAX_S, name="random")
        for command in ([*LOADGEN, "dataset", *words(flags)], theirs)
    ]
    for cost, said in ran:
        if cost.code:
            raise RuntimeError(said)
    hashes = [line.split()[1] for line in ran[1][1].splitlines() if line.startswith("prompt ")]
    prompts = [
        json.loads(line)["prompt"] for line in (folder / "random.jsonl").read_text().splitlines()
    ]
    return sum(
        hashlib.sha256(a.encode()).hexdigest() == b for a, b in zip(prompts, hashes, strict=True)
    )


def section(
    scenario: Scenario, compared: Sequence[Row], theirs: Sequence[Kept], ours: Sequence[Kept]
) -> Iterator[str]:
    """What the page and the console show of a scenario."""
    yield f"### {scenario.name}"
    yield f"`{' '.join(words(scenario.flags))}`"
    head = ("", "vllm bench serve", "loadgen", "loadgen - vllm", "definitions")
    yield table(head, (row.cells for row in compared))
    for name, runs in (("vllm bench serve", theirs), ("loadgen", ours)):
        others = ", ".join(figure(run.others_s) for run in runs)
        which = "none quiet, so of all" if all_disturbed(runs) else f"medians of {len(quiet(runs))}"
        says = f"; says {'; '.join(run.says for run in runs)}" if name == "loadgen" else ""
        yield f"{name}: {len(runs)} runs, {which}; CPU s of others: {others}{says}."


def main() -> int:
    """Compare; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.compare_vllm", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often the tools take turns (5)")
    parser.add_argument("--requests", type=int, default=60, help="of a run at low load (60)")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    options = parser.parse_args()
    # As Ctrl-C: servers and clients are put away.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    real, programs = vllm_on_cpu(), made(real_recipes.vllm)
    parts, agreed = [], True
    with tempfile.TemporaryDirectory(prefix="loadgen-peers-") as name:
        folder = Path(name)
        flags = parsed_flags(programs, folder)
        if others := unknown(flags):
            raise RuntimeError(
                f"the parser and tests/data/flags/vllm.json do not have the same flags: {others}"
            )
        write_prompts(real.tokenizer, folder, 2 * options.requests)
        alike = random_alike(programs, real.tokenizer, folder, 2 * options.requests)
        server = real.case.begin()
        try:
            server.ready(real.case.ready_s)
            pair = Pair(server, programs, real.tokenizer, folder)
            about = machine.describe()
            parts.append(
                f"{time.strftime('%Y-%m-%d')}, vLLM {real_recipes.VLLM} (server and client), "
                f"{about['cpu']}, {about['usable_cores']} cores for server and client. "
                f"{options.rounds} runs of each tool, in turn; medians leave out runs during which "
                f"other processes used more than {DISTURBED_S:g} CPU s."
            )
            for scenario in scenarios(options.requests):
                theirs, ours = pair.turns(scenario, options.rounds)
                compared = rows(metrics(chat=scenario.chat, judged=scenario.judged), theirs, ours)
                agreed &= all(row.judgement != DISAGREE for row in compared)
                parts += section(scenario, compared, theirs, ours)
        finally:
            server.stop()
        parts.append(
            f"The parser of the installed `vllm bench serve` has {len(flags)} flags: those of "
            "docs/other-flags.md, all of them.\n\n"
            f"`--dataset-rule vllm-0.11` makes {alike} of {2 * options.requests} of vLLM's own "
            "random prompts alike."
        )
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        between(DOCUMENT, BEGIN, text, END)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Tools: the peers that the judge knows, as they are told to carry a load out here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.engines.environments import Recipe
from bench.peers import recipes
from bench.peers.peer import METRICS, MODEL, PERCENTILES, PROMPT_TOKENS, Reported, Task
from bench.performance.load import CHAT
from loadgen.lab.judge import tool
from loadgen.lab.judge.case import Load
from loadgen.lab.judge.tool import Printed, Tool

KNOWN = tool.built_in()
VLLM_SETTINGS = "`--dataset-name random --burstiness inf --ignore-eos`"


@dataclass(frozen=True)
class Described:
    """See `Peer`; a tool by the judge's description.

    Attributes:
        tool: The description.
        begins: The words that start it; the first is a program of its environment.
        recipe: Its environment.
        settings: What it is told beside the load, in words for the page.
        poisson: Whether it knows no constant arrivals.
    """

    tool: Tool
    begins: tuple[str, ...]
    recipe: Recipe | None
    settings: str
    poisson: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.tool.name

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of its own."""
        return self.tool.env

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        program, *rest = self.begins
        return carried_out(self.tool, [str(task.programs / program), *rest], task)

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`; of its remarks those on whether it kept up."""
        return reported(self.tool, tool.read(self.tool, folder, said))


def carried_out(described: Tool, begins: list[str], task: Task) -> list[str]:
    """The command line of a tool that carries a task out; writes what that needs."""
    load = task.load
    api = tool.CHAT if load.backend == CHAT else tool.COMPLETIONS
    asked = Load(load.count, load.rate, load.streams, PROMPT_TOKENS, load.tokens)
    return tool.command_line(
        described, begins, tool.Task(task.url, MODEL, task.tokenizer, task.folder, asked, api)
    )


def reported(described: Tool, printed: Printed) -> Reported:
    """What a tool printed, as the tables have it.

    Raises:
        LookupError: It printed no number of tokens.
    """
    figures = printed.figures
    times = {
        name: {p: figures[f"{name}_p{p}_ms"] for p in PERCENTILES}
        for name in METRICS
        if all(f"{name}_p{p}_ms" in figures for p in PERCENTILES)
    }
    says = [
        text for text in printed.says if described.machine and re.search(described.machine, text)
    ]
    return Reported(round(figures["output_tokens"]), times, "; ".join(says))


TOOLS = (
    Described(KNOWN["vllm-rs"], ("vllm-rs", "bench", "serve"), recipes.vllm_rs, VLLM_SETTINGS),
    Described(KNOWN["vllm"], ("vllm", "bench", "serve"), recipes.vllm, VLLM_SETTINGS),
    Described(
        KNOWN["guidellm"],
        ("guidellm", "run"),
        recipes.guidellm,
        "`--profile kind=constant --data kind=synthetic_text`; workers as it chooses",
    ),
    Described(
        KNOWN["aiperf"],
        ("aiperf", "profile"),
        recipes.aiperf,
        "`--endpoint-type chat --streaming --arrival-pattern constant`; workers as it chooses",
    ),
    Described(
        KNOWN["inference-perf"],
        ("inference-perf",),
        recipes.inference_perf,
        "`data.type: random`, which it has for completions alone; `worker_max_concurrency: 5000`",
    ),
    Described(
        KNOWN["evalscope"],
        ("evalscope", "perf"),
        recipes.evalscope,
        "`perf --open-loop --dataset random --stream`, whose arrivals are Poisson's",
        poisson=True,
    ),
)

"""The commands of `loadgen`: its own, and those that packages add by entry points."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loadgen.util.packages import installed
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Command = Callable[[list[str]], int]
# the line of help and the function of each; a module is imported when its command is called
OWN = {
    "run": ("measure a server, or the built-in simulator", "loadgen.cli.commands.run:main"),
    "demo": ("try loadgen without a server, at 1,000 requests/s", "loadgen.cli.commands.demo:main"),
    "search": (
        "find the highest rate or concurrency that meets an SLO",
        "loadgen.cli.commands.search:main",
    ),
    "dataset": (
        "show the prompts of a run, or download a published data set",
        "loadgen.cli.commands.dataset:main",
    ),
    "translate": (
        "print the command for one of AIPerf, guidellm and others",
        "loadgen.cli.commands.translate:main",
    ),
    "doctor": (
        "show this machine's limits, and how much load it can make",
        "loadgen.cli.commands.doctor:main",
    ),
    "report": (
        "print a saved result, or write it as HTML or CSV",
        "loadgen.cli.commands.report:main",
    ),
    "explain": (
        "say where the time of a run's requests went, and why",
        "loadgen.cli.commands.explain:main",
    ),
    "compare": (
        "compare runs, with confidence intervals of the differences",
        "loadgen.cli.commands.compare:main",
    ),
    "tune": ("find the best way to serve a model, with a study", "loadgen.lab.commands.tune:main"),
    "audit": ("find inconsistent numbers in published results", "loadgen.lab.commands.audit:main"),
    "judge": (
        "judge a load generator on servers that know the truth",
        "loadgen.lab.commands.judge:main",
    ),
    "verify": (
        "compute the numbers of a result again from its records",
        "loadgen.lab.commands.verify:main",
    ),
    "replicate": (
        "measure again what a result measured, and compare",
        "loadgen.lab.commands.replicate:main",
    ),
    "import": (
        "import published results into a study",
        "loadgen.lab.commands.import_published:main",
    ),
    "benchmark-runner": (
        "run a benchmark job of GPUStack",
        "loadgen.lab.commands.benchmark_runner:main",
    ),
    "completion": (
        "print the completion for bash, zsh or fish",
        "loadgen.cli.commands.completion:main",
    ),
    "help": (
        "show help: of a command, its flags by topic, exit codes",
        "loadgen.cli.commands.help:main",
    ),
    "version": ("print the version", "loadgen.cli.commands.help:version"),
}
# What other tools call their command, by the word that is typed after `loadgen`.
INSTEAD = {
    "bench": "vllm bench serve",
    "vllm": "vllm bench serve",
}
# Words behind which a command of another tool stands, with other flags.
OTHERS = ("aiperf", "benchmark", "evalscope", "genai-perf", "guidellm", "inference-perf", "profile")
# In one row of the overview, so that it fits a small terminal.
SELDOM = ("import", "benchmark-runner", "completion", "version")
HEAD = """\
usage: loadgen COMMAND [FLAGS], an open-loop load generator for LLM servers
"""
HINTS = """\
To measure a server:       loadgen run --base-url http://host:8000 --rate 10
Help: loadgen COMMAND --help, loadgen help COMMAND, loadgen help exit-codes"""


def overview() -> str:
    """Return the help of `loadgen`: its commands, and how to begin."""
    rows = [(name, text) for name, (text, _) in OWN.items() if name not in SELDOM]
    rows += [(name, _summary(entry)) for name, entry in sorted(added().items())]
    rows.append(("also", ", ".join(SELDOM)))
    return "\n".join([HEAD, *(f"  {name:<16} {text}".rstrip() for name, text in rows), "", HINTS])


def names() -> list[str]:
    """Return the names of all commands."""
    return [*OWN, *added()]


def added() -> "dict[str, EntryPoint]":
    """Return the commands that packages add by entry points; loadgen's engines are among them."""
    return {entry.name: entry for entry in installed("loadgen.commands")}


def find(name: str) -> Command | None:
    """Return the command of that name, or None."""
    if name in OWN:
        own_command: Command = getattr(module(name), OWN[name][1].partition(":")[2])
        return own_command
    entries = added()
    if name in entries:
        added_command: Command = entries[name].load()
        return added_command
    return None


def module(name: str) -> Any:
    """Import the module of one of loadgen's own commands."""
    return importlib.import_module(OWN[name][1].partition(":")[0])


def remedy(name: str) -> str:
    """Suggest what to write instead of an unknown command."""
    import difflib  # not before: it takes 2 ms, and most commands are known

    commands = names()
    if name.startswith("-"):
        return f"write the command first, for example `loadgen run {printable(name)}`"
    if name in INSTEAD:
        return f"use `loadgen run` in place of `{INSTEAD[name]}` (docs/migrating.md has its flags)"
    if name in OTHERS:
        return "give the whole command to `loadgen translate`"
    near = difflib.get_close_matches(name, commands, 1)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(commands)}"


def _summary(entry: "EntryPoint") -> str:
    """Return the summary of an added command: the first sentence of its docstring."""
    try:
        text = (entry.load().__doc__ or "").strip()
    except Exception:  # noqa: BLE001 - a broken package must not hide the other commands
        return "(fails to load)"
    return printable(text[:1].lower() + text[1:].partition(".")[0])

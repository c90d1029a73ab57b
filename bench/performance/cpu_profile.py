"""Where the CPU time of a run goes: `python -m bench.performance.cpu_profile [--write]`, a part of
`make bench`.

`perf` samples all processes of `loadgen run` and of the loop in C, for a load of many short
answers. What a run of a few requests takes, the start-up, is taken off. --write puts the table into
bench/results/performance.md.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.performance.clients import Limit, call, flags
from bench.performance.load import Load, serve
from bench.performance.plan import Plan
from bench.table import figure
from loadgen.engines import Server
from loadgen.util import machine
from tests.helpers.command_line import LOADGEN
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench" / "results" / "performance.md"
BEGIN, END = (
    "<!-- cpu profile: written by python -m bench.performance.cpu_profile --write -->",
    "<!-- end of cpu profile -->",
)
ROUNDS = 3
HERTZ = 2_000
SAMPLE_US = 1_000_000 // HERTZ
FEW = 20  # requests of a run that is nearly all start-up
COMMAND = "loadgen"
PROCESSES = {
    COMMAND: "command: progress, report, result",
    "loadgen-prepare": "prepares prompts and schedule",
    "loadgen-worker": "measures",
    "limit": "loop in C",
}
# The first that matches says what the code of a file is.
PARTS = (
    ("kernel", re.compile(r"\[kernel|\[vdso")),
    ("compiled core", re.compile(r"/loadgen/.*\.so")),
    (
        "Python",
        re.compile(r"libpython|/python[\d.]*$|/_[a-z]+\.cpython|/(array|math|select)\.cpython"),
    ),
    ("uvloop", re.compile(r"uvloop")),
    ("libraries", re.compile("")),
)
Costs = Counter[tuple[str, str]]  # us by process and part


def measure(rounds: int, load: Load) -> dict[tuple[str, str], list[float]]:
    """Return the us per request of each process and part, one for each round."""
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="loadgen-bench-") as name:
        server, limit = serve(), Limit(Path(name))
        try:
            for _ in range(rounds):
                whole = sampled(commands(server, limit, load), Path(name))
                start = sampled(commands(server, limit, replace(load, count=FEW)), Path(name))
                for key in whole:
                    found.setdefault(key, []).append((whole[key] - start[key]) / (load.count - FEW))
        finally:
            server.stop()
    return found


def commands(server: Server, limit: Limit, load: Load) -> list[list[str]]:
    """What carries a load out, once each."""
    return [
        [*LOADGEN, "run", *flags(server, load)],
        limit.command(server.base_url, server.model, load, load.connections),
    ]


def sampled(all_commands: Sequence[Sequence[str]], folder: Path) -> Costs:
    """Run the commands below `perf`; returns what they took."""
    cost: Costs = Counter()
    data = str(folder / "perf.data")
    for command in all_commands:
        call(
            [
                "perf",
                "record",
                "-q",
                "-e",
                "cpu-clock",
                "-F",
                str(HERTZ),
                "-o",
                data,
                "--",
                *command,
            ]
        )
        cost += parsed(call(["perf", "script", "-i", data, "-F", "comm,ip,dso"]))
    return cost


def parsed(samples: str) -> Costs:
    """Add up samples: a line each, with the process, an address and the file of the code in
    brackets.

    A process with another name is taken for the command: it has the interpreter's until it names
    itself.
    """
    cost: Costs = Counter()
    for process, file in re.findall(r"^\s*(\S+)\s+[0-9a-f]+ \((.*)\)$", samples, re.MULTILINE):
        part = next(name for name, pattern in PARTS if pattern.search(file))
        cost[process if process in PROCESSES else COMMAND, part] += SAMPLE_US
    return cost


def report(found: Mapping[tuple[str, str], Sequence[float]], load: Load, rounds: int) -> str:
    """Write the table: medians of the rounds."""
    about = machine.describe()
    return "\n".join(
        [
            f"{time.strftime('%Y-%m-%d')}; {about['cpu']}, {about['usable_cores']} cores shared "
            f"with the server; {load}; us of CPU time per request without the start-up, medians of "
            f"{rounds} rounds.",
            "",
            table(["process", *(name for name, _ in PARTS), "all"], _rows(found)),
        ]
    )


def _rows(found: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[list[str]]:
    for process, does in PROCESSES.items():
        costs = [middle(found.get((process, part), [0.0])) for part, _ in PARTS]
        yield [f"`{process}` ({does})", *map(figure, costs), figure(sum(costs))]


def middle(values: Sequence[float]) -> float:
    """Return the median, 0 at least: a run may by chance take less than its start-up."""
    return max(0.0, sorted(values)[len(values) // 2])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.cpu_profile",
        description="Where the CPU time of a run goes, by perf.",
    )
    parser.add_argument(
        "--write", action="store_true", help="put the table into bench/results/performance.md"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of a short load: shows that it works, no more",
    )
    chosen = parser.parse_args(argv)
    if shutil.which("perf") is None:
        sys.exit("cpu_profile: needs perf (package linux-tools or linux-perf)")
    (load,) = (load for load in Plan().loads if load.name == "W2")
    rounds, load = (1, replace(load, count=100)) if chosen.quick else (ROUNDS, load)
    text = report(measure(rounds, load), load, rounds)
    print(text)
    if chosen.write:
        between(DOCUMENT, BEGIN, text, END)


if __name__ == "__main__":
    main()

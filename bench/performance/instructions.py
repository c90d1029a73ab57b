"""How many instructions and calls of Python functions a request costs the measuring process: a part
of `make bench`.

`python -m bench.performance.instructions [--compare CHECKOUT] [--quick]`. valgrind's callgrind
counts the instructions in user space of `Load.run`, in runs of different size on a metronome, and
`sys.setprofile` the Python functions that it calls. Differences between the runs are what a further
request and a further event cost: a chat with two tokens, of which a crash journal is kept, as
always, and whose text is not sampled. The figures vary less than times do, but not on a busy
machine: where the client is late, it reads several events at once and opens more connections.
--compare counts another checkout, with its modules compiled, in the same way.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.table import figure
from loadgen.testing.process import started
from loadgen.util.number_format import plural
from tests.helpers.documents import table
from tests.helpers.source import ROOT

COUNTED_RUN = Path(__file__).with_name("counted_run.py")
COUNT_C = Path(__file__).with_name("callgrind_count.c")
RATE = 50.0  # valgrind runs the client some fifty times slower; it must not fall behind
CALLS_RATE = 500.0
RARE = 0.01  # calls per request; functions that are called less often have one row together
FEW_TOKENS = 2
PROMPT = "Measure what it costs. " * 20
MAX_S = 900.0


@dataclass(frozen=True)
class Plan:
    """The sizes of the runs.

    Attributes:
        requests: Requests of the short run.
        more_requests: Further ones in the longer run.
        more_events: Further events of each answer in the run with long answers.
        rounds: How often all is counted.
    """

    requests: int = 100
    more_requests: int = 4_900
    more_events: int = 50
    rounds: int = 1


QUICK = Plan(requests=20, more_requests=20, more_events=10, rounds=1)


@dataclass(frozen=True)
class Counts:
    """What the measuring process executes in user space.

    Attributes:
        request: Instructions per chat with an answer of two tokens.
        event: Instructions per event with a token, each in a read of its own.
        calls: Calls of each Python function per such chat, by module and name.
    """

    request: float
    event: float
    calls: Mapping[str, float]


class CountedRuns:
    """Carries out runs and counts.

    Args:
        folder: For what it compiles and writes.
        url: The server.

    Raises:
        RuntimeError: valgrind, its headers or a compiler is missing.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self._url = url
        self._output = folder / "callgrind.out"
        self._journal = folder / "journal"
        self._prompts = folder / "prompts.jsonl"
        self._library = folder / "callgrind_count.so"
        self._prompts.write_bytes(
            orjson.dumps({"prompt": PROMPT, "input_tokens": len(PROMPT.split())}) + b"\n"
        )
        for program in ("valgrind", "cc"):
            if shutil.which(program) is None:
                raise RuntimeError(f"needs {program}")
        compiling = ["cc", "-shared", "-fPIC", "-O2", "-o", str(self._library), str(COUNT_C)]
        if subprocess.run(compiling, capture_output=True, check=False).returncode:
            raise RuntimeError("needs valgrind/callgrind.h (package valgrind)")

    def measure(self, checkout: Path, plan: Plan) -> Counts:
        """Count what a request and an event cost in a checkout.

        Raises:
            RuntimeError: A run failed, or measured another checkout.
        """
        requests = plan.requests + plan.more_requests
        short = self._instructions(checkout, plan.requests, FEW_TOKENS)
        longer = self._instructions(checkout, requests, FEW_TOKENS)
        long_answers = self._instructions(checkout, plan.requests, FEW_TOKENS + plan.more_events)
        calls = Counter(self._calls(checkout, requests))
        calls.subtract(self._calls(checkout, plan.requests))
        return Counts(
            (longer - short) / plan.more_requests,
            (long_answers - short) / (plan.requests * plan.more_events),
            {function: count / plan.more_requests for function, count in calls.items()},
        )

    def _instructions(self, checkout: Path, requests: int, tokens: int) -> int:
        """Return the instructions of one run."""
        for file in self._output.parent.glob(f"{self._output.name}*"):
            file.unlink()
        callgrind = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            f"--callgrind-out-file={self._output}",
            "-q",
        ]
        run = [str(requests), str(RATE), str(tokens), str(self._library)]
        output = self._run(checkout, callgrind, run)
        count = instructions_in(self._output.with_name(f"{self._output.name}.1").read_text())
        print(
            f"{checkout}: {requests} requests of {tokens} tokens: {count:,} instructions, lag p99 "
            f"{output['lag_p99_ms']:.3g} ms",
            file=sys.stderr,
        )
        return count

    def _calls(self, checkout: Path, requests: int) -> dict[str, int]:
        """Return the calls of each Python function in one run."""
        output = self._run(checkout, [], [str(requests), str(CALLS_RATE), str(FEW_TOKENS)])
        calls: dict[str, int] = output["calls"]
        print(
            f"{checkout}: {requests} requests: {sum(calls.values()):,} calls of Python functions, "
            f"lag p99 {output['lag_p99_ms']:.3g} ms",
            file=sys.stderr,
        )
        return calls

    def _run(self, checkout: Path, tool: Sequence[str], run: Sequence[str]) -> dict[str, Any]:
        """Carry out one run, and return what it prints."""
        files = [self._url, str(self._prompts), str(self._journal)]
        self._journal.unlink(missing_ok=True)
        environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [*tool, sys.executable, str(COUNTED_RUN), *files, *run],
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"the run ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
            )
        output: dict[str, Any] = orjson.loads(done.stdout)
        if not Path(output["package"]).is_relative_to(checkout):
            raise RuntimeError(f"measured {output['package']} in place of {checkout}")
        return output


def instructions_in(output: str) -> int:
    """Return the sum of all instructions in a file of callgrind.

    Raises:
        ValueError: It has none.
    """
    totals = re.search(r"^totals: (\d+)$", output, re.MULTILINE)
    if totals is None:
        raise ValueError("the file of callgrind has no totals")
    return int(totals[1])


def report(rounds: Sequence[Sequence[Counts]], checkouts: Sequence[Path]) -> str:
    """Make the tables: the median of all rounds for each checkout, and the ratio of the first to
    the second.

    Args:
        rounds: For each checkout, what each round counted.
        checkouts: One or two folders.
    """
    calls = [_median_calls(counts) for counts in rounds]
    values = {
        f"instructions per request of {FEW_TOKENS} tokens": [
            statistics.median(count.request for count in counts) for counts in rounds
        ],
        "instructions per further event": [
            statistics.median(count.event for count in counts) for counts in rounds
        ],
        "calls of Python functions per request": [sum(count.values()) for count in calls],
    }
    head = ["user space", *map(str, checkouts), *(["ratio"] if len(checkouts) > 1 else [])]
    rows = [[name, *map(figure, counts), *_ratio(counts)] for name, counts in values.items()]
    return "\n".join(
        [
            "# What a request executes",
            "",
            f"{time.strftime('%Y-%m-%d')}; medians of {plural(len(rounds[0]), 'round')}; load "
            f"average {os.getloadavg()[0]:.1f}.",
            "",
            table(head, rows),
            "",
            "The functions of these calls; of a flush of the journal there is one a second.",
            "",
            table(["calls per request", *map(str, checkouts)], _function_rows(calls)),
        ]
    )


def _median_calls(counts: Sequence[Counts]) -> dict[str, float]:
    """Return the median calls of each function."""
    functions = dict.fromkeys(function for count in counts for function in count.calls)
    return {
        function: statistics.median(count.calls.get(function, 0.0) for count in counts)
        for function in functions
    }


def _function_rows(calls: Sequence[Mapping[str, float]]) -> list[list[str]]:
    """Write a row for each function, the most called first, and one for all that are rare."""
    most: Counter[str] = Counter()
    for checkout in calls:
        for function, count in checkout.items():
            most[function] = max(most[function], count)
    rows = [
        [f"`{function}`", *(f"{checkout.get(function, 0.0):.2f}" for checkout in calls)]
        for function, count in most.most_common()
        if count >= RARE
    ]
    rare = [function for function, count in most.items() if count < RARE]
    sums = [sum(checkout.get(function, 0.0) for function in rare) for checkout in calls]
    return [*rows, [f"{len(rare)} others", *(f"{count:.2f}" for count in sums)]]


def _ratio(values: Sequence[float]) -> list[str]:
    """Write the ratio of the first to the second, where there are two."""
    if len(values) < 2:
        return []
    return [f"{values[0] / values[1]:.3f}" if values[1] else "n/a"]


def main(argv: Sequence[str] | None = None) -> None:
    """Count, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.instructions",
        description="Instructions and calls of Python functions per request of the measuring "
        "process.",
    )
    parser.add_argument(
        "--compare", type=Path, metavar="CHECKOUT", help="count this folder of the project, too"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few requests: shows that it works, no more"
    )
    flags = parser.parse_args(argv)
    plan = QUICK if flags.quick else Plan()
    checkouts = [ROOT] if flags.compare is None else [ROOT, flags.compare.resolve()]
    rounds: list[list[Counts]] = [[] for _ in checkouts]
    with (
        tempfile.TemporaryDirectory(prefix="loadgen-bench-") as folder,
        started("loadgen.testing.metronome") as server,
    ):
        try:
            runs = CountedRuns(Path(folder), server.url)
            for _ in range(plan.rounds):
                for checkout, counts in zip(checkouts, rounds, strict=True):
                    counts.append(runs.measure(checkout, plan))
        except RuntimeError as error:
            sys.exit(f"instructions: {error}")
    print(report(rounds, checkouts))


if __name__ == "__main__":
    main()

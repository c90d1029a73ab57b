"""How many instructions a request and an event cost the measuring process: a part of `make bench`.

`python -m bench.performance.instructions [--compare CHECKOUT] [--quick]`. valgrind's callgrind
counts the instructions in user space of `Load.run`, in runs of different size on a metronome.
Differences between the runs are what a further request and a further event cost. The figures vary
less than times do, but not on a busy machine: where the client is late, it reads several events at
once and opens more connections. --compare counts another checkout, with its modules compiled, in
the same way.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from loadgen.testing.process import started
from loadgen.util.number_format import plural
from tests.helpers.documents import table
from tests.helpers.source import ROOT

COUNTED_RUN = Path(__file__).with_name("counted_run.py")
COUNT_C = Path(__file__).with_name("callgrind_count.c")
RATE = 25.0  # valgrind runs the client some fifty times slower; it must not fall behind
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
    more_requests: int = 200
    more_events: int = 50
    rounds: int = 3


QUICK = Plan(requests=20, more_requests=20, more_events=10, rounds=1)


@dataclass(frozen=True)
class Instructions:
    """What the measuring process executes in user space.

    Attributes:
        request: Instructions per chat with an answer of two tokens.
        event: Instructions per event with a token, each in a read of its own.
    """

    request: float
    event: float


class Callgrind:
    """Counts the instructions of runs.

    Args:
        folder: For what it compiles and writes.
        url: The server.

    Raises:
        RuntimeError: valgrind, its headers or a compiler is missing.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self._url = url
        self._output = folder / "callgrind.out"
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

    def measure(self, checkout: Path, plan: Plan) -> Instructions:
        """Count what a request and an event cost in a checkout.

        Raises:
            RuntimeError: A run failed, or measured another checkout.
        """
        short = self._count(checkout, plan.requests, FEW_TOKENS)
        longer = self._count(checkout, plan.requests + plan.more_requests, FEW_TOKENS)
        long_answers = self._count(checkout, plan.requests, FEW_TOKENS + plan.more_events)
        events = plan.requests * plan.more_events
        return Instructions((longer - short) / plan.more_requests, (long_answers - short) / events)

    def _count(self, checkout: Path, requests: int, tokens: int) -> int:
        """Return the instructions of one run."""
        for file in self._output.parent.glob(f"{self._output.name}*"):
            file.unlink()
        command = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            f"--callgrind-out-file={self._output}",
            "-q",
        ]
        command += [sys.executable, str(COUNTED_RUN), self._url, str(self._prompts)]
        command += [str(requests), str(RATE), str(tokens), str(self._library)]
        environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
        run = subprocess.run(
            command,
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_S,
            check=False,
        )
        if run.returncode:
            raise RuntimeError(f"the run ended with {run.returncode}: {run.stderr.strip()[-2000:]}")
        if not Path(run.stdout.strip()).is_relative_to(checkout):
            raise RuntimeError(f"measured {run.stdout.strip()} in place of {checkout}")
        count = instructions_in(self._output.with_name(f"{self._output.name}.1").read_text())
        print(
            f"{checkout}: {requests} requests of {tokens} tokens: {count:,} instructions",
            file=sys.stderr,
        )
        return count


def instructions_in(output: str) -> int:
    """Return the sum of all instructions in a file of callgrind.

    Raises:
        ValueError: It has none.
    """
    totals = re.search(r"^totals: (\d+)$", output, re.MULTILINE)
    if totals is None:
        raise ValueError("the file of callgrind has no totals")
    return int(totals[1])


def report(rounds: Sequence[Sequence[Instructions]], checkouts: Sequence[Path]) -> str:
    """Make the table: the median of all rounds for each checkout, and the ratio of the first to the
    second.

    Args:
        rounds: For each checkout, what each round counted.
        checkouts: One or two folders.
    """
    requests = [statistics.median(count.request for count in counts) for counts in rounds]
    events = [statistics.median(count.event for count in counts) for counts in rounds]
    head = ["instructions in user space", *map(str, checkouts)]
    rows = [
        [f"per request of {FEW_TOKENS} tokens", *(f"{count:,.0f}" for count in requests)],
        ["per further event", *(f"{count:,.0f}" for count in events)],
    ]
    if len(checkouts) > 1:
        head.append("ratio")
        rows[0].append(f"{requests[0] / requests[1]:.3f}")
        rows[1].append(f"{events[0] / events[1]:.3f}")
    return (
        f"{time.strftime('%Y-%m-%d')}; medians of "
        f"{plural(len(rounds[0]), 'round')}.\n\n{table(head, rows)}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Count, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.instructions",
        description="Instructions per request and per event of the measuring process, by "
        "callgrind.",
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
    rounds: list[list[Instructions]] = [[] for _ in checkouts]
    with (
        tempfile.TemporaryDirectory(prefix="loadgen-bench-") as folder,
        started("loadgen.testing.metronome") as server,
    ):
        try:
            callgrind = Callgrind(Path(folder), server.url)
            for _ in range(plan.rounds):
                for checkout, counts in zip(checkouts, rounds, strict=True):
                    counts.append(callgrind.measure(checkout, plan))
        except RuntimeError as error:
            sys.exit(f"instructions: {error}")
    print(report(rounds, checkouts))


if __name__ == "__main__":
    main()

"""Clients: the commands that are compared.

Each sends one Load to one server in a process of its own.
"""

import shutil
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson

from bench.performance.load import EMBEDDINGS, PROMPT_TOKENS, Load, Served
from loadgen.cli.exit_codes import DONE, ERRORS, INVALID
from tests.helpers.command_line import LOADGEN, environment
from tests.helpers.source import ROOT

LIMIT_C = Path(__file__).with_name("limit.c")
C_LIMIT, C_SAME_CALLS = "C limit", "C, same calls"
MAX_S = 600.0


class Client(Protocol):
    """One of the commands.

    Attributes:
        name: What tables call it.
    """

    name: str

    def run(self, server: Served, load: Load) -> Mapping[str, Any]:
        """Carry the load out; returns what the command tells, as `Sample.of` takes it.

        Raises:
            RuntimeError: The command failed.
        """


class Loadgen:
    """`loadgen run` as users run it: every token stamped, counted and checked; the result with all
    its histograms.

    Args:
        folder: For what it writes.
        records: Also write every request, with the times of all its tokens, to a file.
        workers: How many processes share the requests.
    """

    def __init__(self, folder: Path, *, records: bool = False, workers: int = 1) -> None:
        self._more = ["--records", str(folder / "records.jsonl")] if records else []
        self.name = "loadgen --records" if records else "loadgen"
        if workers > 1:
            self._more += ["--workers", str(workers)]
            self.name += f" --workers {workers}"

    def run(self, server: Served, load: Load) -> Mapping[str, Any]:
        """See `Client`."""
        command = [*LOADGEN, "run", *flags(server, load), *self._more]
        return told_by(orjson.loads(call(command, codes=(DONE, INVALID, ERRORS))))


class Plain:
    """`plain_client.py`: aiohttp, uvloop and orjson."""

    name = "plain aiohttp"

    def run(self, server: Served, load: Load) -> Mapping[str, Any]:
        """See `Client`."""
        command = self.command(server.base_url, server.model, load, load.connections)
        found: Mapping[str, Any] = orjson.loads(call(command))
        return found

    @staticmethod
    def command(url: str, model: str, load: Load, connections: int) -> list[str]:
        """What carries a load out with so many connections opened before it; it runs in the root
        of the project.
        """
        sizes = [load.rate, load.count, load.tokens, "--connections", connections, "--model", model]
        return [sys.executable, "-m", "bench.performance.plain_client", url, *map(str, sizes)]


class Limit:
    """`limit.c`, compiled here.

    Args:
        folder: Where the program goes.
        same_calls: Whether it makes the system calls that loadgen makes: beside stamped reads, the
            stamp of what was sent, TCP_INFO, a peek before the send, a read of the body from a
            file, a timerfd, and a question what can be read before each wait.

    Raises:
        RuntimeError: There is no compiler, or it refuses.
    """

    def __init__(self, folder: Path, *, same_calls: bool = False) -> None:
        self.name = C_SAME_CALLS if same_calls else C_LIMIT
        self._switches = ["-sipbtq"] if same_calls else []
        self._program = compiled(LIMIT_C, folder)

    def run(self, server: Served, load: Load) -> Mapping[str, Any]:
        """See `Client`."""
        command = self.command(server.base_url, server.model, load, load.connections)
        found: Mapping[str, Any] = orjson.loads(call(command))
        return found

    def command(self, url: str, model: str, load: Load, connections: int) -> list[str]:
        """What carries a load out with so many connections opened before it."""
        api = ["-e"] if load.backend == EMBEDDINGS else []
        sizes = [urlsplit(url).port, model, load.rate, load.count, load.tokens, connections]
        return [self._program, *self._switches, *api, *map(str, sizes)]


def compiled(source: Path, folder: Path) -> str:
    """Compile a program in C.

    Returns:
        The program, in that folder.

    Raises:
        RuntimeError: There is no compiler, or it refuses.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("there is no C compiler (cc)")
    program = str(folder / source.stem)
    call([compiler, "-O2", "-o", program, str(source)])
    return program


def flags(server: Served, load: Load) -> list[str]:
    """The flags that make `loadgen run` carry out a load, silently, with its result as JSON on
    stdout.
    """
    given = {
        "--base-url": server.base_url,
        "--backend": load.backend,
        "--tokenizer": server.tokenizer,
        "--rate": load.rate,
        "--burstiness": "inf",
        "--num-prompts": load.count,
        "--random-input-len": PROMPT_TOKENS,
        "--warm-connections": load.connections,
    }
    if load.backend != EMBEDDINGS:
        given["--random-output-len"] = load.tokens
    return [text for name, value in given.items() for text in (name, str(value))] + [
        "--json",
        "--quiet",
    ]


def told_by(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a result of loadgen says, under the names that the other clients use."""
    own = result["loadgen"]
    latency, client = own["latency_ms"], own["client"]
    checked = {check["name"]: check["value"] for check in own["checks"]}["rate off schedule"]
    failed = [check["name"] for check in own["checks"] if check["ok"] is False and check["counts"]]
    return {
        "tokens": result.get("total_output_tokens", 0),  # none of embeddings
        "cpu_s": client["cpu_s"],
        "loop_busy": client["busy_share"],
        "wall_s": client["wall_s"],
        # "0% off the schedule's 1000 req/s: 1000 req/s", or "n/a"
        "achieved_rps": float(checked.split()[-2]) if checked[0].isdigit() else None,
        "late_p50_ms": latency["lag"]["p50"],
        "late_p99_ms": latency["lag"]["p99"],
        "late_max_ms": latency["lag"]["max"],
        "ttft_p50_ms": latency["ttft_sent"]["p50"],
        "ttft_p99_ms": latency["ttft_sent"]["p99"],
        "peak_mb": client["peak_memory_bytes"] / 1e6,
        "verdict": own["verdict"],
        "failed_checks": failed,
    }


def call(command: Sequence[str], codes: Container[int] = (DONE,)) -> str:
    """Run a command to its end.

    Args:
        command: Its words.
        codes: The exit codes that are no failure.

    Returns:
        What it wrote to stdout.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=MAX_S,
        check=False,
    )
    if done.returncode not in codes:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return done.stdout

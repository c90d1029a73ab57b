"""Load generators side by side on a server that knows the truth; `make compare-peers` runs this.

Exit code 1: a peer failed, or loadgen is not what it has to be.
"""

import argparse
import math
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines.environments import CACHE, CannotBeMade, Recipe, made
from bench.engines.tiny_qwen3 import tiny_qwen3
from bench.peers import recipes
from bench.peers.aims import Aim, aims, start_aims
from bench.peers.costs import Costs
from bench.peers.floors import CLimit, PlainClient
from bench.peers.meter import BYTES_PER_MB
from bench.peers.ours import OURS
from bench.peers.peer import Peer
from bench.peers.quiet import DISTURBED_S, MARK
from bench.peers.tables import aims_table, costs_table, load_table, runs_table
from bench.peers.tools import TOOLS
from bench.peers.trial import Failed, Trial, programs, tried
from bench.performance.load import COMPLETIONS, Load
from loadgen.testing.process import Process, started
from loadgen.util import machine
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench/results/peers.md"
PAGE = ROOT / "docs/peers.md"  # has the costs
LEFT_OUT = ("loadgen --records", "loadgen on one core", "plain aiohttp")
START = Load("S", rate=20, count=20, tokens=2)
LOADS = (
    START,
    Load("W1", rate=200, count=2_000, tokens=50),
    Load("W2", rate=500, count=4_000, tokens=2),
    Load("W3", rate=1_000, count=3_000, tokens=100),
)
QUICK = (
    START,
    Load("W1", rate=100, count=100, tokens=20),
    Load("W2", rate=100, count=100, tokens=2),
    Load("W3", rate=200, count=200, tokens=20),
)
PEERS: dict[str, Peer] = {  # by what --only calls them
    "loadgen": OURS[0],
    "loadgen-records": OURS[1],
    "loadgen-one-core": OURS[2],
    "loadgen-first-run": OURS[3],
    **dict(
        zip(
            ("vllm-rs", "vllm", "guidellm", "aiperf", "inference-perf", "evalscope"),
            TOOLS,
            strict=True,
        )
    ),
    "plain": PlainClient(),
    "limit": CLimit(),
}


@dataclass(frozen=True)
class Comparison:
    """A part of the page.

    Attributes:
        peers: Who takes part, as --only calls them.
        loads: What they are asked to do.
        first_ms: When the server writes the first token of an answer.
        gap_ms: How far apart its tokens are.
        begin, end: The lines around the part.
    """

    peers: Sequence[str]
    loads: Sequence[Load]
    first_ms: int
    gap_ms: int
    begin: str
    end: str


def _overhead(streams: int, count: int) -> Load:
    return Load(f"O{streams}", math.inf, count, 100, streams=streams, backend=COMPLETIONS)


BEGIN, END = "<!-- peers: written by make compare-peers FLAGS=--write -->", "<!-- end of peers -->"
ALL = Comparison(tuple(PEERS), LOADS, first_ms=20, gap_ms=20, begin=BEGIN, end=END)
# The closest peer, ours, and what is possible.
RUST = Comparison(
    ("vllm-rs", "loadgen", "loadgen-first-run", "limit"),
    LOADS,
    first_ms=20,
    gap_ms=20,
    begin="<!-- rust: written by make compare-peers FLAGS='--rust --write' -->",
    end="<!-- end of rust -->",
)
# What vllm-rs was published with.
OVERHEAD = Comparison(
    ("vllm-rs", "loadgen"),
    tuple(
        _overhead(streams, count)
        for streams, count in ((1, 10), (10, 50), (100, 300), (1_000, 3_000))
    ),
    first_ms=50,
    gap_ms=10,
    begin="<!-- overhead: written by make compare-peers FLAGS='--overhead --write' -->",
    end="<!-- end of overhead -->",
)


def measure(
    peers: Sequence[Peer],
    loads: Sequence[Load],
    truth: Sequence[str],
    rounds: int,
    failures: list[str],
) -> dict[str, Costs]:
    """Every peer under every load, in turn and several times; `failures` get what went wrong."""
    tokenizer, trials = (
        tiny_qwen3(CACHE),
        defaultdict[str, dict[str, list[Trial]]](lambda: defaultdict(list)),
    )
    with started("loadgen.testing.metronome", *truth) as server:
        # The kernel likes to wake who reads where the writer runs; the writer at least shall not
        # move.
        os.sched_setaffinity(server.pid, {max(os.sched_getaffinity(0))})
        for number in range(rounds):
            for load in loads:
                for peer in [*peers[number % len(peers) :], *peers[: number % len(peers)]]:
                    print(f"round {number + 1}, {load}: {peer.name}", file=sys.stderr, flush=True)
                    try:
                        trials[peer.name][load.name].append(_tried(peer, load, server, tokenizer))
                    except (Failed, OSError, ValueError, LookupError, RuntimeError) as error:
                        failures.append(f"{peer.name}, {load.name}: {error}")
                        print(failures[-1], file=sys.stderr, flush=True)
    return {peer.name: Costs(trials[peer.name]) for peer in peers}


def _tried(peer: Peer, load: Load, server: Process, tokenizer: Path) -> Trial:
    with tempfile.TemporaryDirectory(prefix="loadgen-peer-") as folder:
        return tried(peer, load, server, tokenizer, Path(folder))


def available(peers: Sequence[Peer], failures: list[str]) -> list[Peer]:
    """Those whose environments can be had; made here, so that no run waits for one."""
    found = []
    for peer in peers:
        try:
            programs(peer)
        except CannotBeMade as reason:
            failures.append(f"{peer.name} cannot be installed: {reason}")
        else:
            found.append(peer)
    return found


def installed_mb(peers: Sequence[Peer]) -> dict[str, float]:
    """The sizes of the environments in MB, loadgen's default install among them."""
    sizes = {peer.name: _size_mb(programs(peer).parent) for peer in peers if peer.recipe}
    if any(peer in peers for peer in OURS):
        with tempfile.TemporaryDirectory(prefix="loadgen-install-") as name:
            source = Path(name, "source")
            for part in ("setup.py", "pyproject.toml", "README.md"):
                source.mkdir(exist_ok=True)
                shutil.copy(ROOT / part, source)
            for part in ("loadgen", "engines", "bench"):
                shutil.copytree(
                    ROOT / part,
                    source / part,
                    ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"),
                )
            sizes[OURS[0].name] = _size_mb(
                made(Recipe("loadgen", ((str(source),),)), Path(name)).parent
            )
    return sizes


def _size_mb(folder: Path) -> float:
    """Return the bytes in its files; what folders take depends on the file system."""
    found = [path.lstat() for path in folder.rglob("*")]
    files = {
        (each.st_dev, each.st_ino): each.st_size for each in found if stat.S_ISREG(each.st_mode)
    }
    return sum(files.values()) / BYTES_PER_MB


def what_we_have_to_be(found: dict[str, Costs]) -> list[Aim]:
    """The aims, of what was measured."""
    plain, recording, one_core, first = (found.get(peer.name, Costs({})) for peer in OURS)
    tools = {peer.name: found[peer.name] for peer in TOOLS if peer.name in found}
    of_start = start_aims(plain, first, tools.get(TOOLS[0].name, Costs({})))
    if not recording.trials:
        return of_start
    return [*of_start, *aims(recording, one_core, tools)]


def settings_table(peers: Sequence[Peer]) -> str:
    """Version and settings of each."""
    versions = {
        peer.name: recipes.version(peer.recipe) if peer.recipe else "this one" for peer in peers
    }
    return table(
        ["client", "version", "settings"],
        ([peer.name, versions[peer.name], peer.settings] for peer in peers),
    )


def heading() -> str:
    """Where it was measured, and which runs count."""
    about = machine.describe()
    return (
        f"{time.strftime('%Y-%m-%d')}; {about['cpu']}, {about['usable_cores']} cores shared with "
        f"the server; {about['system']}. Medians leave out runs during which other processes "
        f"used more than {DISTURBED_S:g} CPU s; {MARK}: all did."
    )


def report(
    peers: Sequence[Peer], found: dict[str, Costs], sizes: dict[str, float], loads: Sequence[Load]
) -> str:
    """All tables."""
    parts = [heading()]
    if START in loads:
        parts += [aims_table(what_we_have_to_be(found)), costs_table(found, sizes)]
    for load in loads:
        parts += [f"### {load}", load_table(found, load.name)] if load is not START else []
    return "\n\n".join(
        [*parts, "### Settings", settings_table(peers), "### Every run", runs_table(found)]
    )


def short_report(found: dict[str, Costs], sizes: dict[str, float]) -> str:
    """The table of the page: costs."""
    shown = {name: costs for name, costs in found.items() if name not in LEFT_OUT}
    return "\n\n".join([heading(), costs_table(shown, sizes)])


def main() -> int:
    """Compare; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers.compare_peers", description=__doc__
    )
    parser.add_argument(
        "--only", choices=list(PEERS), action="append", help="a peer, instead of all"
    )
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--rust", action="store_true", help="vLLM's Rust client, loadgen, and a loop in C"
    )
    part.add_argument(
        "--overhead",
        action="store_true",
        help="the overhead test that vLLM's Rust client came with",
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often the peers take turns (3)")
    parser.add_argument(
        "--quick", action="store_true", help="one round of a few requests: shows that it works"
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    options = parser.parse_args()
    # As Ctrl-C: servers and clients are put away.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.write and (options.only or options.quick):
        parser.error(
            "--write: the page is of all peers and whole loads; leave out --only and --quick"
        )
    failures: list[str] = []
    comparison = RUST if options.rust else OVERHEAD if options.overhead else ALL
    peers = available([PEERS[name] for name in options.only or comparison.peers], failures)
    loads, rounds = (QUICK, 1) if options.quick else (comparison.loads, options.rounds)
    truth = ("--first-ms", str(comparison.first_ms), "--gap-ms", str(comparison.gap_ms))
    found = measure(peers, loads, truth, rounds, failures)
    sizes = {} if options.quick or options.overhead else installed_mb(peers)
    text = report(peers, found, sizes, loads)
    print("\n\n".join([text, *failures]))
    if options.write:
        between(DOCUMENT, comparison.begin, text, comparison.end)
    if options.write and comparison is ALL:
        text = short_report(found, sizes)
        between(PAGE, comparison.begin, text, comparison.end)
    missed = START in loads and any(aim.met is False for aim in what_we_have_to_be(found))
    return int(bool(failures) or missed)


if __name__ == "__main__":
    sys.exit(main())

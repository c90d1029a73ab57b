"""Real engines on this machine's CPU: APIs, features, the kit, a load, and shutdowns; `make
test-engines` runs this.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.engines import protocols
from bench.engines.engines import ENGINES, Real
from bench.engines.features import table as features
from bench.engines.loads import RATE, REQUESTS, load
from bench.engines.shutdowns import TRIALS, Shutdown, shut_down
from loadgen.testing.stream import Stream, StreamFormat
from tests.helpers.documents import between, cells_of, found_between, table
from tests.helpers.source import ROOT
from tests.helpers.stream_habits import reasoning_key, usage_with

DOCUMENT = ROOT / "bench/results/engines.md"
BEGIN, END = (
    "<!-- real engines: written by make test-engines FLAGS=--write -->",
    "<!-- end of real engines -->",
)
APIS = DOCUMENT
APIS_BEGIN, APIS_END = (
    "<!-- APIs: written by make test-engines FLAGS=--write -->",
    "<!-- end of APIs -->",
)
FEATURES_BEGIN = "<!-- features: written by make test-engines FLAGS=--write -->"
FEATURES_END = "<!-- end of features -->"
KIT = ROOT / "tests/qa/engines/test_conformance.py"
HEADS = (
    ("engine", "version", "ready", "first delta", "reasoning", "usage with", "[DONE]", "kit"),
    ("engine", "answered", "input as predicted", "output tokens"),
    ("engine", "state", "stops", "ready, median", "stopped, median", "stopped, most", "survivors"),
)
Rows = list[tuple[str, ...]]


def main() -> int:
    """Try each engine; the exit code is 1 if one fails or leaves something behind."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    parser.add_argument(
        "--only", choices=list(ENGINES), action="append", help="an engine, instead of all"
    )
    parser.add_argument("--write", action="store_true", help=f"put the rows into {DOCUMENT.name}")
    parser.add_argument(
        "--protocols", action="store_true", help="try the APIs of the engines alone"
    )
    parser.add_argument(
        "--features", action="store_true", help="try sessions, users who leave and so on alone"
    )
    options = parser.parse_args()
    failed = False
    for name in options.only or ENGINES:
        real = ENGINES[name]()
        if options.protocols or not options.features:
            _try_apis(name, real, write=options.write)
        if options.features or not options.protocols:
            failed |= not _try_features(name, real, write=options.write)
        if options.protocols or options.features:
            continue
        streams, loaded = _tried(name, real)
        stops = {
            state: [shut_down(real, state) for _ in range(count)] for state, count in TRIALS.items()
        }
        kit, passed = _kit(name)
        failed |= not passed or any(
            trial.survivors for trials in stops.values() for trial in trials
        )
        stopped = [_stops(name, state, trials) for state, trials in stops.items()]
        rows: Sequence[Rows] = ([(*streams, kit)], [loaded], stopped)
        print("\n\n".join(map(table, HEADS, rows)), flush=True)
        if options.write:
            _write(name, rows)
    return int(failed)


def _try_apis(name: str, real: Real, *, write: bool) -> None:
    """Try each API of an engine; its rows take the place of those that the document has of it."""
    with tempfile.TemporaryDirectory() as folder:
        rows = list(protocols.protocol_table(name, real, Path(folder)))
    print(table(protocols.HEAD, rows), flush=True)
    if write:
        old = cells_of(found_between(APIS, APIS_BEGIN, APIS_END))
        between(APIS, APIS_BEGIN, table(protocols.HEAD, _merged(name, old, rows)), APIS_END)


def _try_features(name: str, real: Real, *, write: bool) -> bool:
    """Try each feature of an engine, and print and write its rows; whether none failed."""
    with tempfile.TemporaryDirectory() as folder:
        rows = list(features.feature_table(name, real, Path(folder)))
    if not rows:
        return True
    print(table(features.HEAD, rows), flush=True)
    failed = any(features.FAILED in row[-1] for row in rows)
    if write and not failed:
        old = cells_of(found_between(DOCUMENT, FEATURES_BEGIN, FEATURES_END))
        between(
            DOCUMENT, FEATURES_BEGIN, table(features.HEAD, _merged(name, old, rows)), FEATURES_END
        )
    return not failed


def _merged(name: str, old: Rows, new: Rows) -> Rows:
    """The rows of a table with those of one engine in place of its old ones."""
    merged = [row for row in old if row[0] != name] + list(new)
    return sorted(merged, key=lambda row: list(ENGINES).index(row[0]))


def _write(name: str, rows: Sequence[Rows]) -> None:
    """Put the rows of one engine in place of those that the document has of it."""
    there = [cells_of(text) for text in found_between(DOCUMENT, BEGIN, END).strip().split("\n\n")]
    old = there if len(there) == len(HEADS) else [[] for _ in HEADS]
    tables = []
    for head, kept, new in zip(HEADS, old, rows, strict=True):
        tables.append(table(head, _merged(name, kept, new)))
    between(DOCUMENT, BEGIN, "\n\n".join(tables), END)


def _kit(name: str) -> tuple[str, bool]:
    """What the kit says of an engine: a line of pytest's, and whether all passed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "engines",
        "-q",
        "--tb=short",
        str(KIT),
        "-k",
        name,
    ]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=1800, check=False
    )
    if done.returncode:
        print(done.stdout)
    counts = re.findall(
        r"\d+ (?:passed|failed|skipped|errors?)", done.stdout.strip().splitlines()[-1]
    )
    return ", ".join(counts), done.returncode == 0


def _tried(name: str, real: Real) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How one server streams, and how it bears a load."""
    began_s = time.monotonic()
    server = real.case.begin()
    try:
        server.ready(real.case.ready_s)
        ready_s = time.monotonic() - began_s
        version = server.version() or real.case.engine.version() or "unknown"
        with Stream(server.base_url, server.model, max_tokens=60, temperature=0) as stream:
            found = StreamFormat(list(stream))
        result = load(real, server)
    finally:
        server.stop()
    own = result["loadgen"]
    predicted = own["tokens"]["input_predicted"]
    alone = own["tokens"]["predicted_server_input_tokens"] is None  # its own tokenizer is not known
    return (
        (
            name,
            version,
            f"{ready_s:.1f} s",
            f"`{json.dumps(found.deltas[0])}`",
            reasoning_key(found) or "-",
            usage_with(found) or "-",
            "yes" if found.done else "no",
        ),
        (
            name,
            f"{own['outcomes']['ok']} of {REQUESTS} at {RATE}/s",
            "-" if alone else f"{predicted} of {REQUESTS}",
            str(result["total_output_tokens"]),
        ),
    )


def _stops(name: str, state: str, trials: Sequence[Shutdown]) -> tuple[str, ...]:
    took = [trial.stop_s for trial in trials]
    ready = statistics.median(trial.ready_s for trial in trials)
    left = [survivor for trial in trials for survivor in trial.survivors]
    figures = [f"{seconds:.1f} s" for seconds in (ready, statistics.median(took), max(took))]
    return (name, state, str(len(trials)), *figures, "; ".join(left) or "none")


if __name__ == "__main__":
    sys.exit(main())

"""Real engines on this machine's CPU: the kit, a load, and shutdowns; `--write` puts the tables into docs/engines.md."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.testing.stream import Habits, Stream
from tests.documents import between
from tests.engines.real.engines import ENGINES, Real
from tests.engines.real.loads import RATE, REQUESTS, load
from tests.engines.real.shutdowns import TRIALS, Shutdown, shut_down
from tests.source import ROOT

DOCUMENT = ROOT / "docs/engines.md"
BEGIN, END = "<!-- real engines: written by make test-engines FLAGS=--write -->", "<!-- end of real engines -->"
KIT = Path(__file__).with_name("test_conformance.py")
LIVE = ["engine", "version", "ready", "first delta", "reasoning", "usage with", "[DONE]", "kit"]
LOADED = ["engine", "answered", "input as counted by the server", "output tokens", "median TTFT", "median TPOT", "verdict"]
STOPPED = ["engine", "state", "stops", "ready, median", "stopped, median", "stopped, most", "survivors"]


def main() -> int:
    """Try each engine; the exit code is 1 if one fails or leaves something behind."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.real", description=__doc__)
    parser.add_argument("--only", choices=ENGINES, action="append", help="an engine, instead of all")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/engines.md")
    options = parser.parse_args()
    live, loads, stops, failed = [], [], [], False
    for name in options.only or ENGINES:
        kit, passed = _kit(name)
        real = ENGINES[name]()
        row, loaded = _tried(name, real)
        live.append([*row, kit])
        loads.append(loaded)
        done = {state: [shut_down(real, state) for _ in range(count)] for state, count in TRIALS.items()}
        stops += [_stops(name, state, trials) for state, trials in done.items()]
        failed |= not passed or any(trial.survivors for trials in done.values() for trial in trials)
        print(_table(LIVE, live[-1:]), _table(LOADED, loads[-1:]), _table(STOPPED, stops[-len(TRIALS) :]), sep="\n\n")
    if options.write:
        tables = [_table(LIVE, live), _table(LOADED, loads), _table(STOPPED, stops)]
        between(DOCUMENT, BEGIN, "\n\n".join(tables), END)
    return int(failed)


def _kit(name: str) -> tuple[str, bool]:
    """What the kit says of an engine: a line of pytest's, and whether all passed."""
    command = [sys.executable, "-m", "pytest", "-m", "engines", "-q", "--tb=short", str(KIT), "-k", name]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=1800, check=False)
    if done.returncode:
        print(done.stdout)
    return done.stdout.strip().splitlines()[-1].partition(" in ")[0], done.returncode == 0


def _tried(name: str, real: Real) -> tuple[list[str], list[str]]:
    """How one server streams, and how it bears a load."""
    began_s = time.monotonic()
    server = real.case.begin()
    try:
        server.ready(real.case.ready_s)
        ready_s = time.monotonic() - began_s
        version = server.version() or real.case.engine.version() or "unknown"
        with Stream(server.base_url, server.model, max_tokens=60, temperature=0) as stream:
            habits = Habits(list(stream))
        result = load(real, server)
    finally:
        server.stop()
    own = result["loadgen"]
    streams = [f"`{json.dumps(habits.deltas[0])}`", habits.reasoning_key or "-", habits.usage_with or "-"]
    planned = f"{own['tokens']['input_as_planned']} of {REQUESTS} as planned"
    times = [f"{result[key]:.1f} ms" for key in ("median_ttft_ms", "median_tpot_ms")]
    told = f"{own['verdict']}{_doubts(own)}"
    outcomes = f"{own['outcomes']['ok']} of {REQUESTS} at {RATE}/s"
    return (
        [name, version, f"{ready_s:.1f} s", *streams, "yes" if habits.done else "no"],
        [name, outcomes, planned, str(result["total_output_tokens"]), *times, told],
    )


def _doubts(own: dict[str, Any]) -> str:
    named = [check["name"] for check in own["checks"] if check["ok"] is False and check["counts"]]
    return f": {', '.join(named)}" if named else ""


def _stops(name: str, state: str, trials: Sequence[Shutdown]) -> list[str]:
    took = [trial.stop_s for trial in trials]
    ready = statistics.median(trial.ready_s for trial in trials)
    left = [survivor for trial in trials for survivor in trial.survivors]
    figures = [f"{seconds:.1f} s" for seconds in (ready, statistics.median(took), max(took))]
    return [name, state, str(len(trials)), *figures, "; ".join(left) or "none"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())

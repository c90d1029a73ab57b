"""Start-up: seconds from a command to what its user waits for; `python -m
bench.performance.startup` shows them.
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import time

import orjson

from bench.performance.clients import MAX_S, ROOT, call
from bench.table import figure, table
from tests.helpers.command_line import LOADGEN, environment

SENDING_S = 0.3  # how long a run goes on once it says that it runs
REPEATS = 31
BARE = "`python -c pass`"
COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    "`python -c 'import loadgen'`": [sys.executable, "-c", "import loadgen"],
    "`loadgen --help`": [*LOADGEN, "--help"],
    "`loadgen run --help`": [*LOADGEN, "run", "--help"],
}


def first_send_s(*flags: str) -> float:
    """Seconds from `loadgen run FLAGS` to its first request.

    The run is interrupted soon after, so that it can be asked for as many requests as one likes.

    Raises:
        RuntimeError: It never sent anything.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [*LOADGEN, "run", *flags, "--json", "--save-detailed", "--result-dir", folder]
        pipe = subprocess.PIPE
        began_s = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=pipe, stderr=pipe, text=True
        )
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("loadgen: running"):
                    time.sleep(SENDING_S)
                    process.send_signal(signal.SIGINT)
                    break
            result, rest = process.communicate(timeout=MAX_S)
        finally:
            process.kill()
            process.wait()
    sent_s = orjson.loads(result)["start_times"] if result else []
    if not sent_s:
        raise RuntimeError(f"{' '.join(command)} sent nothing: {''.join(said)}{rest}")
    # CLOCK_MONOTONIC seconds, as time.monotonic() reads it
    return float(min(sent_s)) - began_s


def commands_s(repeats: int) -> dict[str, float]:
    """Seconds that each of COMMANDS takes from start to end: the medians of so many, called in
    turn.
    """
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, command in COMMANDS.items():
            began_s = time.monotonic()
            call(command)
            taken[name].append(time.monotonic() - began_s)
    return {name: statistics.median(each) for name, each in taken.items()}


def main() -> None:
    """Measure, and print the table."""
    found = commands_s(REPEATS)
    rows = [
        [name, figure(seconds * 1e3), figure(seconds / found[BARE])]
        for name, seconds in found.items()
    ]
    print(table(["", "ms", f"of {BARE}"], rows))


if __name__ == "__main__":
    main()

"""Start-up: seconds from a command to what its user waits for."""

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import orjson

from tests.commands.calling import LOADGEN, environment
from tests.performance.clients import LONGEST_S, ROOT, call

SENDING_S = 0.3  # how long a run goes on once it says that it runs


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
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=pipe, stderr=pipe, text=True)
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("loadgen: running"):
                    time.sleep(SENDING_S)
                    process.send_signal(signal.SIGINT)
                    break
            result, rest = process.communicate(timeout=LONGEST_S)
        finally:
            process.kill()
            process.wait()
    sent_s = orjson.loads(result)["start_times"] if result else []
    if not sent_s:
        raise RuntimeError(f"{' '.join(command)} sent nothing: {''.join(said)}{rest}")
    # CLOCK_MONOTONIC seconds, as time.monotonic() reads it
    return float(min(sent_s)) - began_s


def command_s(command: Sequence[str], repeats: int) -> float:
    """Seconds that a command takes from start to end, as the median of `repeats`."""
    taken = []
    for _ in range(repeats):
        began_s = time.monotonic()
        call(command)
        taken.append(time.monotonic() - began_s)
    return statistics.median(taken)


def help_s(repeats: int) -> float:
    """Seconds of `loadgen --help`."""
    return command_s([*LOADGEN, "--help"], repeats)


def python_s(code: str, repeats: int) -> float:
    """Seconds of `python -c CODE`."""
    return command_s([sys.executable, "-c", code], repeats)

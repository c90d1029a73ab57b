"""Smoke: the least that an installed loadgen does; a script that needs nothing else: `python
smoke.py`.

It imports what is compiled and measures the simulator, which it starts itself: loadgen starts
engines on Linux alone, and there it is asked to do so too.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources

from loadgen.cli.doctor.software import COMPILED

LENGTHS = ("--random-input-len", "16", "--random-output-len", "4")
COUNT = 50


def measured(*flags: str) -> None:
    """Send COUNT requests, all of which must succeed.

    Raises:
        SystemExit: They do not.
    """
    command = [
        sys.executable,
        "-m",
        "loadgen",
        "run",
        "--rate",
        str(COUNT),
        "--num-prompts",
        str(COUNT),
        *flags,
    ]
    done = subprocess.run(
        [*command, *LENGTHS, "--json", "--quiet"], capture_output=True, text=True, check=False
    )
    completed = json.loads(done.stdout)["completed"] if done.stdout else 0
    if done.returncode or completed != COUNT:
        sys.exit(
            f"{' '.join(command)}: exit code {done.returncode}, {completed} of {COUNT} "
            f"ok\n{done.stderr}"
        )


@contextlib.contextmanager
def simulator() -> Iterator[str]:
    """The simulator, started here; yields its base URL."""
    command = [sys.executable, "-m", "loadgen.engines.sim", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def main() -> None:
    """Do it; says in a line what was done."""
    os.environ["PYTHONSAFEPATH"] = "1"  # a checkout in the working folder is not what is installed
    for name in COMPILED:
        importlib.import_module(name)
    tokenizer = resources.files("loadgen.engines.sim").joinpath("tokenizer.json")
    with simulator() as url:
        measured("--base-url", url, "--tokenizer", str(tokenizer))
    if sys.platform == "linux":
        measured("--engine", "sim")
    print(f"loadgen runs on Python {sys.version.split()[0]}, {sys.platform}")


if __name__ == "__main__":
    main()

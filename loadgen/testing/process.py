"""Process: a test server in its own process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.errors import LoadgenError

LISTENING = "listening on "
GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Process:
    """A running test server.

    Attributes:
        url: Scheme, host and port.
        pid: Process id, for tests that stop or slow down the server.
    """

    url: str
    pid: int


@contextlib.contextmanager
def started(module: str, *flags: str, folder: Path | None = None) -> Iterator[Process]:
    """Run `python -m MODULE FLAGS...` for the length of a `with` block, which begins when the
    server listens.

    Args:
        module: The module of the server.
        flags: Its flags.
        folder: Where the module is, if it is in no installed package.

    Raises:
        LoadgenError: The server ended without listening; the message has its first line of output.
    """
    command = [sys.executable, "-P", "-m", module, *flags]
    env = None if folder is None else os.environ | {"PYTHONPATH": str(folder)}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=env,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(LISTENING):
                raise LoadgenError(
                    f"{module} did not listen: {line.strip() or 'look at its error output'}"
                )
            yield Process(line.removeprefix(LISTENING).strip(), process.pid)
        finally:
            # A stopped process handles the next signal only after this one.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()

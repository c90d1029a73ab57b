"""Process: a test server in a process of its own."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.errors import LoadgenError

LISTENING = "listening on "
GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Process:
    """A server that runs.

    Attributes:
        url: Scheme, host and port.
        pid: Of the process, for tests that stop or starve it.
    """

    url: str
    pid: int


@contextlib.contextmanager
def started(module: str, *flags: str) -> Iterator[Process]:
    """`python -m MODULE FLAGS...`, from when it listens until the context ends.

    Raises:
        LoadgenError: It ended without listening; the message has what it said.
    """
    command = [sys.executable, "-P", "-m", module, *flags]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(LISTENING):
                raise LoadgenError(f"{module} did not listen: {line.strip() or 'look at its error output'}")
            yield Process(line.removeprefix(LISTENING).strip(), process.pid)
        finally:
            process.send_signal(signal.SIGCONT)  # a stopped process would not hear the next one
            process.terminate()
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()

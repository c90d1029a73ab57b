"""Child: a process of ours that speaks in messages, one a line."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from typing import Any, Self

from loadgen.errors import LoadgenError
from loadgen.util import messages
from loadgen.util.machine import BLAS_THREADS
from loadgen.util.redaction import KEY_VARIABLE

LONGEST_MESSAGE = 1 << 32  # a snapshot has some 40 bytes for each request
PATIENCE_S = 1.0  # for the end of its stderr, which what it has started may keep open


class Child:
    """`python -P -m MODULE`, running while the context lasts.

    It leads a session of its own: Ctrl-C is for the process that reports, which decides what its children do. -P keeps
    it from importing what lies in the current folder. What it needs of credentials comes in a message: neither its
    command line nor its environment has any. What it says on stderr is said on that of this process.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            self._module,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=LONGEST_MESSAGE,
            start_new_session=True,
            env={BLAS_THREADS: "1"} | {name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
        )
        self._passing = asyncio.ensure_future(_pass_on(self._process.stderr))
        return self

    async def __aexit__(self, *error: object) -> None:
        self.kill()
        await self._process.wait()
        await asyncio.wait([self._passing], timeout=PATIENCE_S)
        self._passing.cancel()
        await asyncio.gather(self._passing, return_exceptions=True)
        transport = self._process._transport  # type: ignore[attr-defined]  # else its pipes close after the loop has
        transport.close()

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not the process's own kill(), which would first look whether it has ended, and take the exit code
                # away from the loop that waits for it.
                os.kill(self._process.pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message; nothing if it has ended."""
        self.say(messages.encode(message))

    def say(self, line: bytes) -> None:
        """Send a line as it is; nothing if it has ended."""
        stdin = self._process.stdin
        if self._process.returncode is None and stdin is not None and not stdin.is_closing():
            stdin.write(line)

    async def end(self) -> str:
        """Wait until it has ended; says how it did."""
        code = await self._process.wait()
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    async def messages(self) -> AsyncIterator[Any]:
        """What it says, until it ends.

        Raises:
            LoadgenError: One that it sent.
        """
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):  # else killed in the middle of one
            message = messages.decode(line)
            if isinstance(message, LoadgenError):
                raise message
            yield message


async def _pass_on(said: asyncio.StreamReader | None) -> None:
    """Say on stderr what a child says on its own: while a live view is drawn there, lines go above it."""
    assert said is not None
    async for line in said:
        print(line.decode(errors="backslashreplace"), end="", file=sys.stderr, flush=True)

"""Child processes of our own, and the one framing of messages between them: a pickled object in base64 on each line.

A parent uses `ChildProcess`. A child uses `decode` for each line of stdin, and `PipeWriter` for stdout.
Unpickling runs code. So messages travel only through the pipes of our own processes, and nothing that a server or a
file contains is ever unpickled.
"""

import asyncio
import base64
import contextlib
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from typing import Any, Self

from loadgen.errors import LoadgenError
from loadgen.util.machine import BLAS_THREADS
from loadgen.util.redaction import KEY_VARIABLE

MAX_MESSAGE_BYTES = 1 << 32  # a snapshot has some 40 bytes for each request
EXIT_POLL_S = 0.1  # used while a process that the child has started keeps its pipes open
STDERR_TIMEOUT_S = 1.0  # wait for the end of stderr, which a process that the child has started may keep open


def encode(message: Any) -> bytes:
    """Encode a message as one line, with its line end."""
    return base64.b64encode(pickle.dumps(message)) + b"\n"


def decode(line: bytes) -> Any:
    """Decode one line that a process of our own has written."""
    return pickle.loads(base64.b64decode(line))


class ChildProcess:
    """Runs `python -P -m MODULE` while the context lasts.

    The child leads a session of its own: Ctrl-C reaches only the parent, which decides what its children do. -P keeps
    Python from importing modules of the current folder. Credentials reach the child in a message, never by its command
    line or environment. The child's stderr is copied to stderr of this process.
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
            limit=MAX_MESSAGE_BYTES,
            start_new_session=True,
            env={BLAS_THREADS: "1"} | {name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
        )
        self._stderr_copy = asyncio.ensure_future(_copy_to_stderr(self._process.stderr))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()
        await asyncio.wait([self._stderr_copy], timeout=STDERR_TIMEOUT_S)
        self._stderr_copy.cancel()
        await asyncio.gather(self._stderr_copy, return_exceptions=True)
        transport = self._process._transport  # type: ignore[attr-defined]  # else its pipes close after the loop has
        transport.close()

    def kill(self) -> None:
        """Kill the process with SIGKILL, unless it has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not the process's own kill(), which would first look whether it has ended, and take the exit code
                # away from the loop that waits for it.
                os.kill(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Kill the process with SIGKILL, and wait until it has ended."""
        self.kill()
        await self._exit_code()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message to the child's stdin. Does nothing if the child has ended."""
        stdin = self._process.stdin
        if self._process.returncode is None and stdin is not None and not stdin.is_closing():
            stdin.write(encode(message))

    async def wait_ended(self) -> str:
        """Wait for the end of the process; returns how it ended, such as "was killed by signal 9"."""
        code = await self._exit_code()
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    async def _exit_code(self) -> int:
        """Wait until the process has ended. asyncio's own wait also waits until its pipes are closed everywhere."""
        waiting = asyncio.ensure_future(self._process.wait())
        try:
            while (code := self._process.returncode) is None:
                await asyncio.wait({waiting}, timeout=EXIT_POLL_S)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return code

    async def messages(self) -> AsyncIterator[Any]:
        """Yield the messages from the child's stdout until it ends.

        Raises:
            LoadgenError: An error that the child has sent as a message.
        """
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):  # else killed in the middle of one
            message = decode(line)
            if isinstance(message, LoadgenError):
                raise message
            yield message


class PipeWriter:
    """Writes messages to a pipe, on the child's side. Once the reader has gone, messages are dropped.

    Args:
        pipe: A file descriptor that has no other writer.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe, self._unsent = pipe, b""

    def send(self, message: Any) -> None:
        """Send a message, and block until the pipe has taken it."""
        self._unsent += encode(message)
        os.set_blocking(self._pipe, True)
        while self._unsent:
            self._write()

    def try_send(self, message: Any) -> None:
        """Send a message without blocking, or drop it while an earlier one is still in the way.

        Where only a part of a message fits into the pipe, the rest goes before the next message.
        """
        os.set_blocking(self._pipe, False)
        self._write()
        if not self._unsent:
            self._unsent = encode(message)
            self._write()

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._pipe, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent = b""


async def _copy_to_stderr(stream: asyncio.StreamReader | None) -> None:
    """Copy a child's stderr line by line: while a live view is drawn on stderr, lines go above it."""
    assert stream is not None
    async for line in stream:
        print(line.decode(errors="backslashreplace"), end="", file=sys.stderr, flush=True)

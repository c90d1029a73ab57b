"""Child processes of our own, and the one framing of messages between them: a pickled object in
base64 on each line.

A parent uses `ChildProcess`. A child uses `decode` for each of its `InputLines`, and `answer` or
`PipeWriter` for stdout. Unpickling runs code. So messages travel only through the pipes of our own
processes, and nothing that a server or a file contains is ever unpickled.

To start an interpreter and to import what it needs takes most of the time of a short run. So a
command forks its children (`forked_child`), and a program that makes many runs keeps one child of
each kind. A kept child is used again only where a new one would be the same: in the process that
started it, with the same environment and current folder.
"""

import asyncio
import atexit
import base64
import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from subprocess import PIPE
from typing import Any, NamedTuple, Self

from loadgen.errors import LoadgenError
from loadgen.util import forked_child
from loadgen.util.machine import BLAS_THREADS
from loadgen.util.redaction import KEY_VARIABLE

READ_BYTES = 1 << 16
MAX_MESSAGE_BYTES = 1 << 32  # a snapshot has some 40 bytes for each request
MIN_POLL_S = (
    0.001  # between two looks whether a child has ended; each is twice as long as the one before
)
MAX_POLL_S = 0.1
STDERR_TIMEOUT_S = (
    1.0  # wait for the end of stderr, which a process that the child has started may keep open
)

Interpreter = subprocess.Popen[bytes]


class Circumstances(NamedTuple):
    """What a child takes over from the process that starts it.

    Attributes:
        pid: The process that starts it.
        folder: The current folder.
        environment: The environment variables.
    """

    pid: int
    folder: str
    environment: dict[str, str]

    @classmethod
    def now(cls) -> "Circumstances":
        """Return those of a child that would be started now."""
        try:
            folder = os.getcwd()
        except OSError:  # it was removed
            folder = ""
        return cls(os.getpid(), folder, dict(os.environ))


_kept: dict[
    str, tuple[Interpreter, Circumstances]
] = {}  # by module: children that wait for another order


class ChildProcess:
    """Runs `run()` of a module in a process of its own while the context lasts.

    The process was forked by `forked_child.fork_ahead`, or is a new interpreter: `python -P -m
    MODULE`, where -P keeps Python from importing modules of the current folder. It leads a session
    of its own: Ctrl-C reaches only the parent, which decides what its children do. Credentials
    reach the child in a message, never by its command line or environment. The child's stderr is
    copied to stderr of this process.

    Args:
        module: The name of a module, whose `run` reads orders from stdin.
        keep: Whether to keep the process after the context for the next one of its kind, if
            `is_idle` is set by then.

    Attributes:
        is_idle: Whether the process has carried out its order, and waits for another one.
    """

    def __init__(self, module: str, *, keep: bool = False) -> None:
        self.is_idle = False
        self._module = module
        self._keep = keep

    async def __aenter__(self) -> Self:
        self._circumstances = Circumstances.now()
        waiting = forked_child.take(self._module) or _take_kept(self._module)
        self._process = waiting or _new_interpreter(self._module)
        self._pipes: list[asyncio.BaseTransport] = []
        try:
            await self._connect()
        except BaseException:  # a cancellation, say: nobody leaves a context that was not entered
            self.kill()
            await self._exit_code()
            self._close_pipes()
            raise
        return self

    async def _connect(self) -> None:
        """Connect the loop to the pipes of the process."""
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        loop = asyncio.get_running_loop()
        self._stdout = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
        self._stderr = asyncio.StreamReader()
        # The loop has copies of the pipes, which it closes, as a kept process outlives it.
        for reader, pipe in ((self._stdout, process.stdout), (self._stderr, process.stderr)):
            read, _ = await loop.connect_read_pipe(
                partial(asyncio.StreamReaderProtocol, reader), LoopPipe(pipe.fileno())
            )
            self._pipes.append(read)
        to_child = LoopPipe(process.stdin.fileno())
        self._stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, to_child)
        self._pipes.append(self._stdin)
        self._stderr_copy = asyncio.ensure_future(self._until_ended(self._stderr))

    async def __aexit__(self, *error: object) -> None:
        await self.stop()
        kept = (
            self._process if self._is_kept and isinstance(self._process, subprocess.Popen) else None
        )
        if kept is None:
            await asyncio.wait([self._stderr_copy], timeout=STDERR_TIMEOUT_S)
        else:
            # what has come is copied; what comes later, when the process is used again
            self._stderr.feed_eof()
            await asyncio.sleep(0)
        self._stderr_copy.cancel()
        await asyncio.gather(self._stderr_copy, return_exceptions=True)
        if kept is not None:
            for pipe in self._pipes:
                pipe.close()
            _keep(self._module, kept, self._circumstances)
        else:
            self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (*self._pipes, self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def _is_kept(self) -> bool:
        return self._keep and self.is_idle and self._process.poll() is None

    def kill(self) -> None:
        """Kill the process with SIGKILL, unless it has ended."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Kill the process with SIGKILL, and wait until it has ended; leave it alone if it is
        idle and kept.
        """
        if not self._is_kept:
            self.kill()
            await self._exit_code()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message to the child's stdin. Does nothing if the child has ended.

        Args:
            message: Any object that can be pickled.
        """
        self.is_idle = False
        if not self._stdin.is_closing():
            self._stdin.write(encode(message))

    async def wait_ended(self) -> str:
        """Wait for the end of the process.

        Returns:
            How it ended, such as "was killed by signal 9".
        """
        code = await self._exit_code()
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    async def _until_ended(self, stderr: asyncio.StreamReader) -> None:
        """Copy the child's stderr, and take its exit code, so that it is no zombie for the rest
        of the run.
        """
        async for (
            line
        ) in stderr:  # line by line: while a live view is drawn on stderr, lines go above it
            print(line.decode(errors="backslashreplace"), end="", file=sys.stderr, flush=True)
        await self._exit_code()

    async def _exit_code(self) -> int:
        """Wait until the process has ended; a process that it has started may keep its pipes
        open.
        """
        pause_s = MIN_POLL_S
        while (code := self._process.poll()) is None:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_POLL_S)
        return code

    async def messages(self) -> AsyncIterator[Any]:
        """Yield the messages from the child's stdout until it ends.

        Raises:
            LoadgenError: An error that the child has sent as a message.
        """
        while (line := await self._stdout.readline()).endswith(
            b"\n"
        ):  # else killed in the middle of one
            message = decode(line)
            if isinstance(message, LoadgenError):
                raise message
            yield message


class LoopPipe:
    """A copy of one end of a pipe, for `connect_read_pipe` and `connect_write_pipe` of the running
    loop, which closes it.

    uvloop closes the descriptor, and then the object: by then another thread may have opened a file
    with the same number. asyncio closes the object alone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._is_asyncio = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def close(self) -> None:
        """Close the pipe, unless the loop has closed its descriptor."""
        if self._is_asyncio:
            os.close(self._fd)


class PipeWriter:
    """Writes messages to a pipe, on the child's side. Once the reader has gone, messages are
    dropped.

    Args:
        pipe: The file descriptor of a pipe that has no other writer.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._unsent = b""

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


def name_process(role: str) -> None:
    """Name this process in `ps -e` and `top`, where a forked child would have the name of the
    command.

    Args:
        role: What follows "loadgen-" in the name.
    """
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(f"loadgen-{role}")


class InputLines:
    """The lines of standard input, in a child, as long as its parent lives.

    The end of the pipe alone does not show that: a process that the parent has forked holds it
    open, too.

    Attributes:
        rest: What was read beyond the last line, for whoever reads on in another way.
    """

    def __init__(self) -> None:
        self.rest = b""
        self._descriptors = [sys.stdin.fileno()]
        with contextlib.suppress(
            OSError, AttributeError
        ):  # only Linux has it; there may be no parent any more
            self._descriptors.append(os.pidfd_open(os.getppid()))

    def __iter__(self) -> Iterator[bytes]:
        stdin = self._descriptors[0]
        while True:
            line, end, rest = self.rest.partition(b"\n")
            if end:
                self.rest = rest
                yield line
                continue
            if select.select(self._descriptors, (), ())[0] != [stdin]:
                return
            os.set_blocking(stdin, True)  # an event loop has set it otherwise
            part = os.read(stdin, READ_BYTES)
            if not part:
                return
            self.rest += part


def encode(message: Any) -> bytes:
    """Encode a message as one line, with its line end."""
    return base64.b64encode(pickle.dumps(message)) + b"\n"


def decode(line: bytes) -> Any:
    """Decode one line that a process of our own has written."""
    return pickle.loads(base64.b64decode(line))


def answer(message: Any) -> None:
    """Write a message to standard output, from a child that may wait until its parent reads it."""
    sys.stdout.buffer.write(encode(message))
    sys.stdout.buffer.flush()


def _new_interpreter(module: str) -> Interpreter:
    """Start a new interpreter for a module, without the API key in its environment."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        bufsize=0,
        start_new_session=True,
        env={BLAS_THREADS: "1"}
        | {name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
    )


def _take_kept(module: str) -> Interpreter | None:
    """Return the kept child that runs a module, once; None if there is none that would be as a
    new one.
    """
    if module not in _kept:
        return None
    process, circumstances = _kept.pop(module)
    if circumstances.pid != os.getpid():  # a fork: the child belongs to the other process
        return None
    if process.poll() is None and circumstances == Circumstances.now():
        return process
    _end(process)
    return None


def _keep(module: str, process: Interpreter, circumstances: Circumstances) -> None:
    """Keep a child that waits for an order, in place of an earlier one."""
    earlier = _take_kept(module)
    if earlier is not None:
        _end(earlier)
    _kept[module] = process, circumstances


@atexit.register
def end_kept() -> None:
    """End the children that are kept by this process."""
    while _kept:
        _, (process, circumstances) = _kept.popitem()
        if circumstances.pid == os.getpid():
            _end(process)


def _end(process: Interpreter) -> None:
    """Kill a child with SIGKILL, unless it has ended, and close its pipes."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.kill()
    process.wait()

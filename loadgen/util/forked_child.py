"""Children that a command forks before its event loop runs: they need not import again what the
command has.

An interpreter takes 0.1 to 0.3 s of processor time to start and to import what several processes of
a run need. A process with threads or a running event loop cannot be forked safely, so only a
command does this, at its start.
"""

import atexit
import contextlib
import importlib
import os
import signal
import sys
import traceback
from typing import BinaryIO

from msgspec import Struct

from loadgen.util import garbage_collection
from loadgen.util.machine import BLAS_THREADS
from loadgen.util.redaction import KEY_VARIABLE

_waiting: dict[str, "list[ForkedChild]"] = {}  # by module: forked, and not used yet


class ForkedChild(Struct, eq=False):
    """A forked process, with the part of the interface of `subprocess.Popen` that `ChildProcess`
    uses.

    Attributes:
        pid: The process.
        stdin: The writing end of its standard input.
        stdout: The reading end of its standard output.
        stderr: The reading end of its standard error.
    """

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO
    _code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                self._code = os.EX_OSERR
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def close(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


def fork_ahead(module: str, message: bytes = b"") -> None:
    """Fork a child that runs `run()` of a module; call while there is one thread, and no event
    loop.

    Does nothing where forking is not safe: beyond Linux, system libraries may have threads.

    Args:
        module: The name of the module.
        message: What is written to the child's standard input at once; shorter than the buffer of a
            pipe.
    """
    if sys.platform == "linux":
        child = _fork(module)
        child.stdin.write(message)
        _waiting.setdefault(module, []).append(child)


def is_waiting(module: str) -> bool:
    """Return whether a child was forked ahead for a module, and not used yet."""
    return bool(_waiting.get(module))


def take(module: str) -> ForkedChild | None:
    """Return a child that was forked ahead for a module, each once; None where there is none."""
    waiting = _waiting.get(module)
    return waiting.pop(0) if waiting else None


@atexit.register
def end_waiting() -> None:
    """End the children that were forked ahead and not used."""
    while _waiting:
        _, children = _waiting.popitem()
        for child in children:
            child.close()
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)


def _fork(module: str) -> ForkedChild:
    """Fork a child that runs a module, with pipes for its standard streams."""
    pipes = [os.pipe() for _ in range(3)]
    (stdin, to_child), (from_child, stdout), (errors, stderr) = pipes
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # or both processes would write what it holds
    garbage_collection.freeze_for_good()
    # A Ctrl-C within what fork() calls would be lost.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        _run_as_child(module, stdin, stdout, stderr, [to_child, from_child, errors])
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for end in (stdin, stdout, stderr):
        os.close(end)
    return ForkedChild(
        pid,
        os.fdopen(to_child, "wb", 0),
        os.fdopen(from_child, "rb", 0),
        os.fdopen(errors, "rb", 0),
    )


def _run_as_child(module: str, stdin: int, stdout: int, stderr: int, others: list[int]) -> None:
    """Become the child: take the pipes, forget what belongs to the command, and run the module.

    Does not return.
    """
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for children in _waiting.values():
            for child in children:
                child.close()
        for end in others:
            os.close(end)
        for standard, end in enumerate((stdin, stdout, stderr)):
            os.dup2(end, standard)
            os.close(end)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        os.environ.setdefault(BLAS_THREADS, "1")
        # `loadgen.cli.command` has seen to it that the kernel shows it nowhere
        os.environ.pop(KEY_VARIABLE, None)
        if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
            del sys.path[0]  # as -P does
        importlib.import_module(module).run()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - what an interpreter of its own would do
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

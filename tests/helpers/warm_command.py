"""The command `loadgen`, imported once and forked for each call: a process of its own that does not
import the command again.
"""

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from loadgen.cli import main
from loadgen.cli.import_guard import single_threaded

with single_threaded():
    from loadgen.analysis.search import search_check  # noqa: F401
    from loadgen.cli.commands import run  # noqa: F401
    from loadgen.runner import coordinator, preparer  # noqa: F401

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


def called(
    arguments: Sequence[str], cwd: Path | None, env: Mapping[str, str], timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run `loadgen ARGUMENTS` to its end.

    Args:
        arguments: What follows `loadgen`.
        cwd: The folder in which it runs; None: the current one.
        env: Its environment. What Python reads from it at its start has no effect.
        timeout_s: After this many seconds it is killed.

    Returns:
        As `subprocess.run`.

    Raises:
        subprocess.TimeoutExpired: It did not end in time.
    """
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        process = _CONTEXT.Process(
            target=_command,
            args=(arguments, str(cwd or Path.cwd()), dict(env), out.name, err.name),
        )
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["loadgen", *arguments], timeout_s, _text(out))
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(["loadgen", *arguments], code, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    """Return what was written, its newlines as `subprocess` has them."""
    return io.TextIOWrapper(io.BytesIO(Path(file.name).read_bytes()), "utf-8").read()


def _command(arguments: Sequence[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Become a new process of the command."""
    for descriptor, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["loadgen", *arguments]
    main.command()

"""Files: replaced as a whole, private to their owner, read while they grow, and a temporary
folder for each run.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from loadgen.errors import BadInput

BUFFER_BYTES = 1 << 16
SCRATCH_PREFIX = "loadgen-run-"
MIN_AGE_S = 60.0  # a younger folder may belong to a process that is about to lock it


def write_atomic(path: Path, text: str, opener: Callable[[str, int], int] | None = None) -> None:
    """Replace the content of a file by a text, as `atomic_file` does.

    Args:
        path: The file. Its folder must exist.
        text: The new content.
        opener: The `opener` argument of `open`.

    Raises:
        OSError: `path` cannot be written. Its content has not changed.
    """
    with atomic_file(path, opener) as file:
        file.write(text.encode())


@contextlib.contextmanager
def atomic_file(path: Path, opener: Callable[[str, int], int] | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the context ends without an error.

    A reader sees the old content or the new content, never a part. A symbolic link is followed. A
    path that is not a regular file (a device, a pipe) is written directly.

    Args:
        path: The file. Its folder must exist.
        opener: The `opener` argument of `open`.

    Raises:
        OSError: `path` cannot be written. The error names `path`, whose content has not changed.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with open(path, "wb", opener=opener) as file:
            yield file
        return
    # An unpredictable name: another user cannot have put a file or a link there.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb", opener=opener) as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        if error.errno and error.filename in (
            None,
            str(temporary),
        ):  # for a full disk the system names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def private_opener(path: str, flags: int, *, locks: bool = False) -> int:
    """Open a file with mode 0600, also if it existed with another mode: for `open(path, "wb",
    opener=private_opener)`.

    Such a file may contain prompts, answers or other confidential text. A path that is not a
    regular file (a device, a pipe) is opened without a change of its mode, and not locked.

    Args:
        path: The file.
        flags: The flags of `os.open`.
        locks: Whether to lock the file until it is closed.

    Returns:
        Its file descriptor.

    Raises:
        BlockingIOError: Another process has locked it. It has not changed.
        OSError: The file cannot be opened, or belongs to another user. It has not changed.
    """
    descriptor = os.open(path, flags & ~os.O_TRUNC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            if locks:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)  # before it is truncated: a refusal loses nothing
            if flags & os.O_TRUNC:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether a process writes a file that it has locked, as `create_private` does; False
    too where the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def create_private(field: str, path: str | Path) -> BinaryIO:
    """Create or truncate a private file.

    Args:
        field: The flag that names the file.
        path: The file.

    Returns:
        The file, open for writing, and locked until it is closed.

    Raises:
        BadInput: The file cannot be written, or another run writes it.
    """
    try:
        return open(path, "wb", buffering=BUFFER_BYTES, opener=partial(private_opener, locks=True))
    except BlockingIOError as error:
        raise BadInput(
            field, f"{path}: another run is writing this file", "name another file"
        ) from error
    except OSError as error:
        raise BadInput(field, f"{path}: {error.strerror}", "name a writable file") from error


def user_folder(variable: str, default: str) -> Path:
    """Return a folder of loadgen by the XDG base directory specification. It need not exist.

    Args:
        variable: The environment variable that names the folder of all programs.
        default: That folder in the home folder, where the variable is not set.

    Raises:
        BadInput: The variable is not set, and the user has no home folder.
    """
    named = os.environ.get(variable, "")
    try:
        return (Path(named) if os.path.isabs(named) else Path.home() / default) / "loadgen"
    except RuntimeError as error:
        raise BadInput(
            "HOME", "this user has no home folder", f"set HOME or {variable} to a writable folder"
        ) from error


def state_folder() -> Path:
    """Return the folder of what lasts longer than a run; see `user_folder`."""
    return user_folder("XDG_STATE_HOME", ".local/state")


class TailReader:
    """Reads the lines that another process has appended to a file since the last call.

    Args:
        path: The file. It need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def lines(self) -> list[bytes]:
        """Return the new complete lines. A line without its line end is left for the next call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(data) + len(end)
        return data.split(b"\n") if end else []


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create an empty folder for the files of one run, and remove it at the end of the context.

    First remove the folders of processes that were killed. A folder in use is recognized by its
    lock, which the kernel releases when its process ends.
    """
    _remove_abandoned()
    path = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _remove_abandoned() -> None:
    """Remove the scratch folders of this user that no process uses."""
    for path in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, in use, or gone
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                state = os.fstat(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if state.st_uid == os.getuid() and time.time() - state.st_mtime > MIN_AGE_S:
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def table_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a table of text: one a line, its cells between bars; # begins a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split(" | ")

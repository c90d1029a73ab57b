"""Atomic file replacement: a reader sees the old content or the new content, never a part."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


def write_atomic(path: Path, text: str, opener: Callable[[str, int], int] | None = None) -> None:
    """Replace the content of a file by `text`, as `atomic_file` does."""
    with atomic_file(path, opener) as file:
        file.write(text.encode())


@contextlib.contextmanager
def atomic_file(
    path: Path,
    opener: Callable[[str, int], int] | None = None,
) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the context ends without an error.

    A symbolic link is followed. A path that is not a regular file (a device, a pipe) is written directly.

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
        if error.errno and error.filename in (None, str(temporary)):  # for a full disk the system names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)

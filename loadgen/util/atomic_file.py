"""Whole: files that are either what they were or all of what they are to be; no reader ever sees a part."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, text: str, opener: Callable[[str, int], int] | None = None) -> None:
    """Put `text` where `path` is, as `whole_file` does."""
    with whole_file(path, opener) as file:
        file.write(text.encode())


@contextlib.contextmanager
def whole_file(path: Path, opener: Callable[[str, int], int] | None = None) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` once the context has ended well.

    A link is followed, and what is no regular file (a device, a pipe) is written as it is, not replaced.

    Args:
        path: The file; its folder must exist.
        opener: What opens it, as of `open`.

    Raises:
        OSError: `path` cannot be written; the error names it, and it is as it was.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with open(path, "wb", opener=opener) as file:
            yield file
        return
    # A new file under a name that nobody can foresee: never one, or a link, that somebody else put there.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(beside, "xb", opener=opener) as file:
            yield file
        beside.replace(path)
    except OSError as error:
        if error.errno and error.filename in (None, str(beside)):  # of a full disk the system names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)

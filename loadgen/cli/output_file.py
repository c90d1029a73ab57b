"""A file that a command writes at its end: a wrong name is bad input, a full disk is not."""

import contextlib
import errno
from collections.abc import Iterator

from loadgen.errors import BadInput, NotWritten

# What another name mends; any other error is of the disk or the device.
OF_THE_NAME = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM),
    *(errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG),
)


@contextlib.contextmanager
def writing(flag: str, path: str) -> Iterator[None]:
    """Name a file, and the flag that asks for it, in an OSError of the block that writes it.

    Raises:
        BadInput: It cannot be written under this name.
        NotWritten: It could not be written.
    """
    try:
        yield
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror or error})"
        if error.errno in OF_THE_NAME:
            raise BadInput(flag, problem, "choose another path") from error
        raise NotWritten(f"{flag}: {problem}") from error

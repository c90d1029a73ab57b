"""LoopPipe: a pipe that an event loop closes, once."""

import asyncio
import os


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

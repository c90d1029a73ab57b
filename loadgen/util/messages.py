"""What a process and the one that started it tell each other: pickled objects, each in one line of text.

Unpickling runs code, so such lines travel only through the pipes between our own processes, which nobody else can
open; nothing that a server or a file says is ever unpickled.
"""

import base64
import os
import pickle
from typing import Any


def encode(message: Any) -> bytes:
    """One line, with its line end."""
    return base64.b64encode(pickle.dumps(message)) + b"\n"


def decode(line: bytes) -> Any:
    """The object in a line that a process of our own has written."""
    return pickle.loads(base64.b64decode(line))


class Voice:
    """Tells messages to another process; once that has gone, nobody is left to be told, and nothing is said.

    Args:
        pipe: A file descriptor that nobody else writes to.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe, self._left = pipe, b""

    def tell(self, message: Any) -> None:
        """Send a message, however long that takes."""
        self._left += encode(message)
        os.set_blocking(self._pipe, True)
        while self._left:
            self._write()

    def tell_if_heard(self, message: Any) -> None:
        """Send a message unless the last one is not taken yet, as by a command that is stopped; it never waits.

        Of a message that does not fit into the pipe at once the rest goes before anything else is said.
        """
        os.set_blocking(self._pipe, False)
        self._write()
        if not self._left:
            self._left = encode(message)
            self._write()

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._pipe, self._left) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._left = b""

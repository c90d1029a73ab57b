"""What a process and the one that started it tell each other: pickled objects, each in one line of text.

Unpickling runs code, so such lines travel only through the pipes between our own processes, which nobody else can
open; nothing that a server or a file says is ever unpickled.
"""

import base64
import pickle
from typing import Any


def encode(message: Any) -> bytes:
    """One line, with its line end."""
    return base64.b64encode(pickle.dumps(message)) + b"\n"


def decode(line: bytes) -> Any:
    """The object in a line that a process of our own has written."""
    return pickle.loads(base64.b64decode(line))

"""What a process tells the one that started it: pickled objects, each in one line of text."""

import base64
import pickle
from typing import Any


def encode(message: Any) -> bytes:
    """One line, with its line end."""
    return base64.b64encode(pickle.dumps(message)) + b"\n"


def decode(line: bytes) -> Any:
    """The object in a line. Only for lines of a process of our own: unpickling runs code."""
    return pickle.loads(base64.b64decode(line))

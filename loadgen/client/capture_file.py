"""The file format of captured responses; docs/capture.md describes it.

JSON lines: one with what the file is, then one per response. A read is text where it is text, else base64.
"""

import base64
import contextlib
import gzip
import re
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.version import __version__

FORMAT, VERSION = "loadgen capture", 1
NOTE = "reads: ns since the request was sent, and what the socket gave; secrets and cookies are blanked with *"
PRINTABLE = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*")

NUMBERS = {  # the keys of a line, and what they are of the response
    "index": "index",
    "target": "target",
    "due": "due_ns",
    "sent": "sent_ns",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "ended": "ended_ns",
}


class End(StrEnum):
    """How a captured response ended."""

    RESPONSE = "response"  # whole by its own framing, on a connection that stayed open
    EOF = "eof"  # the server closed the connection
    RESET = "reset"  # the server or the network broke it
    CLIENT = "client"  # loadgen closed it: a timeout, an interrupt, or bytes that are not the protocol


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response. `due_ns` and `sent_ns` count from the run's start, all other times from sent.

    Attributes:
        index: The request's number within the run.
        due_ns, sent_ns: Of the request.
        input_tokens, output_tokens: What was planned of it.
        reads: One (ns, bytes) per read from the socket, in order; none where nothing came.
        end: How it ended.
        ended_ns: When.
        target: Which of the run's targets gave it, counted from 0.
    """

    index: int
    due_ns: int
    sent_ns: int
    input_tokens: int
    output_tokens: int
    reads: tuple[tuple[int, bytes], ...]
    end: End
    ended_ns: int
    target: int = 0


@dataclass(frozen=True, slots=True)
class Recording:
    """The content of a capture file.

    Attributes:
        model: The model's name in the requests.
        responses: In the order of their index; at least one.
    """

    model: str
    responses: tuple[CapturedResponse, ...]


def load(path: str) -> Recording:
    """Read a capture file.

    Raises:
        BadInput: It cannot be read, or is no capture.
    """
    remedy = "name a file that `loadgen run --capture` wrote"
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            lines = file.read().splitlines()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput("FILE", f"{path}: {reason}", remedy) from error
    number = 1
    try:
        about = orjson.loads(lines[0])
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ValueError(f"not {FORMAT!r} of version {VERSION}")
        responses = []
        for line in lines[1:]:
            number += 1
            responses.append(_from_json(orjson.loads(line)))
        if not responses:
            raise ValueError("it holds no response")
        return Recording(str(about["model"]), tuple(sorted(responses, key=lambda response: response.index)))
    except (LookupError, TypeError, ValueError) as error:
        what = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise BadInput("FILE", f"{path}, line {number}: {what}", remedy) from error


def to_line(response: CapturedResponse) -> bytes:
    """Return the line of one response in the file."""
    numbers = {key: getattr(response, name) for key, name in NUMBERS.items()}
    reads = [[at_ns, *_encoded(data)] for at_ns, data in response.reads]
    return orjson.dumps(numbers | {"end": response.end, "reads": reads}) + b"\n"


def first_line(model: str) -> bytes:
    """Return the first line, which says what the file is."""
    about = {"format": FORMAT, "version": VERSION, "loadgen": __version__, "model": model}
    return orjson.dumps(about | {"timing": "recorded", "note": NOTE}) + b"\n"


def _encoded(data: bytes) -> tuple[str] | tuple[str, str]:
    """Encode bytes as text where they are text, else as base64 with a mark."""
    with contextlib.suppress(UnicodeDecodeError):
        text = data.decode()
        if PRINTABLE.fullmatch(text):
            return (text,)
    return base64.b64encode(data).decode(), "base64"


def _from_json(line: dict[str, Any]) -> CapturedResponse:
    reads = []
    for at_ns, text, *encoding in line["reads"]:
        if encoding not in ([], ["base64"]):
            raise ValueError(f"{encoding[0]!r} is no encoding of a read")
        reads.append((int(at_ns), base64.b64decode(text, validate=True) if encoding else text.encode()))
    line = {"target": 0} | line  # files from before there were several have none
    numbers = {name: int(line[key]) for key, name in NUMBERS.items()}
    return CapturedResponse(**numbers, reads=tuple(reads), end=End(line["end"]))

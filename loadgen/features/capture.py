"""Captures the responses of a run as the sockets gave them, with their times, to be played again.

While the clock runs, reads are only kept, as they are and within a bound; they are blanked,
encoded, compressed and written once it has ended. Only whole responses are kept: one for which
there is no room is left out, and so is every one that begins after it.

A file has JSON lines: one with what the file is, then one per response. A read is text where it is
text, else base64. docs/records.md describes it.
"""

import base64
import contextlib
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, BinaryIO

import orjson
from msgspec import Struct, field

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput, setting
from loadgen.util import files
from loadgen.util.redaction import secrets, spellings
from loadgen.version import __version__
from loadgen.workload.target import Target

FORMAT = "loadgen capture"
VERSION = 1
NOTE = (
    "reads: ns since the request was sent, and what the socket gave; secrets and cookies are "
    "blanked with *"
)
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
LIMIT_BYTES = 64 << 20
# what each costs in memory beside the bytes that came
RESPONSE_BYTES = 800
READ_BYTES = 160
# Where one chunk of a body ends and the next begins.
CUT = re.compile(rb"(\r\n[0-9A-Fa-f]+(?:;[^\r\n]*)?\r\n)")
MAYBE_CUT = CUT.pattern.replace(b"(", b"(?:", 1) + b"?"
SET_COOKIE = re.compile(rb"^(set-cookie:)([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
# Outcomes that say that the response came to its end; after any other it was loadgen that ended it.
WHOLE = (Outcome.OK, Outcome.STATUS, Outcome.EMPTY, Outcome.TRUNCATED)


class End(StrEnum):
    """How a captured response ended."""

    RESPONSE = "response"  # whole by its own framing, on a connection that stayed open
    EOF = "eof"  # the server closed the connection
    RESET = "reset"  # the server or the network broke it
    CLIENT = (
        "client"  # loadgen closed it: a timeout, an interrupt, or bytes that are not the protocol
    )


class CapturedResponse(Struct, frozen=True):
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


class Recording(Struct, frozen=True):
    """The content of a capture file.

    Attributes:
        model: The model's name in the requests.
        responses: In the order of their index; at least one.
    """

    model: str
    responses: tuple[CapturedResponse, ...]


class _Kept(Struct):
    record: Record
    reads: list[tuple[int, bytes]] = field(default_factory=list)
    cost: int = 0
    lost_ns: int = 0
    error: Exception | None = None


class Capture:
    """The tap of connections: keeps what they receive, and writes it to a file at the end.

    Args:
        file: Where to; closed by `close()`.
        targets: Their model is named, and the values of their headers are secrets.
        limit_bytes: Most memory for what is kept.
        compressed: Whether the file is gzipped.

    Attributes:
        start_ns: When the run's clock starts; set it before the first request.
        error: Why the file is not complete, or None.
    """

    def __init__(
        self,
        file: BinaryIO,
        targets: Sequence[Target],
        limit_bytes: int = LIMIT_BYTES,
        *,
        compressed: bool = False,
    ) -> None:
        self._file = file
        self._compressed = compressed
        self._model = targets[0].model
        self._secrets: dict[re.Pattern[bytes], None] = {}
        self.hide(targets)
        self._room = limit_bytes
        self._full = self._closed = False
        self._begun = 0
        self._kept: dict[int, _Kept] = {}
        self.start_ns = 0
        self.error: str | None = None

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | None, targets: Sequence[Target]) -> Iterator["Capture | None"]:
        """Open a capture to `path`, gzipped where the name ends in .gz, and write it at the end;
        None without a path.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        capture = cls(
            files.create_private(setting.capture, path), targets, compressed=path.endswith(".gz")
        )
        try:
            yield capture
        finally:
            capture.close()

    def hide(self, targets: Sequence[Target]) -> None:
        """Write no secret of the headers of these targets, besides those of the ones before."""
        for target in targets:
            for request_class in target.each_class:
                self._secrets.update(dict.fromkeys(patterns(request_class.headers)))

    def sent(self, record: Record) -> None:
        """Begin the response of a request that was sent."""
        self._begun += 1
        if not self._full:
            self._kept[record.index] = kept = _Kept(record)
            self._charge(kept, RESPONSE_BYTES)

    def read(self, record: Record, at_ns: int, data: bytes) -> None:
        """Keep `data` of a read; data after the end of the response is dropped."""
        kept = self._kept.get(record.index)
        if (
            kept is not None
            and record.outcome is None
            and self._charge(kept, READ_BYTES + len(data))
        ):
            kept.reads.append((at_ns, data))

    def lost(self, record: Record, at_ns: int, error: Exception | None) -> None:
        """End the response of a connection that ended before it."""
        kept = self._kept.get(record.index)
        if kept is not None and record.outcome is None:
            kept.lost_ns = at_ns
            kept.error = error

    def about(self) -> dict[str, Any]:
        """Return what was kept, as JSON: responses, left_out (for lack of room), error."""
        return {
            "responses": len(self._kept),
            "left_out": self._begun - len(self._kept),
            "error": self.error,
        }

    def close(self) -> None:
        """Write the captured responses, and close the file; a second close does nothing."""
        if self._closed:
            return
        self._closed = True  # first: it may be called again while it is at work in a thread
        try:
            with self._file, contextlib.ExitStack() as stack:
                file: BinaryIO | gzip.GzipFile = self._file
                if self._compressed:
                    file = stack.enter_context(
                        gzip.GzipFile(mode="wb", compresslevel=6, fileobj=self._file)
                    )
                file.write(first_line(self._model))
                for index in sorted(self._kept):
                    file.write(to_line(self._finished(self._kept[index])))
        except OSError as error:
            self.error = error.strerror or str(error)

    def _charge(self, kept: _Kept, cost: int) -> bool:
        """Reserve room for one more part of a response; where there is none, the response is
        left out.
        """
        if cost > self._room:
            self._full = True
            self._room += kept.cost
            del self._kept[kept.record.index]
            return False
        self._room -= cost
        kept.cost += cost
        return True

    def _finished(self, kept: _Kept) -> CapturedResponse:
        record = kept.record
        if kept.lost_ns:
            end = End.EOF if kept.error is None else End.RESET
        else:
            end = End.RESPONSE if record.outcome in WHOLE else End.CLIENT
        ended_ns = (
            kept.lost_ns or record.closed or (kept.reads[-1][0] if kept.reads else record.sent)
        )
        return CapturedResponse(
            record.index,
            record.due - self.start_ns,
            record.sent - self.start_ns,
            record.input_tokens,
            record.output_tokens,
            tuple(
                (at_ns - record.sent, data) for at_ns, data in blanked(kept.reads, self._secrets)
            ),
            end,
            ended_ns - record.sent,
            record.target,
        )


def patterns(headers: Mapping[str, str]) -> list[re.Pattern[bytes]]:
    """Patterns of what no file may show of responses to requests with these headers: cookies, and
    the secrets in the headers in all their spellings.
    """
    words = (word.encode("latin-1") for word in spellings(secrets(headers)))
    cut_anywhere = (MAYBE_CUT.join(re.escape(bytes([byte])) for byte in word) for word in words)
    return [SET_COOKIE, *(re.compile(rb"()(%b)" % spelling) for spelling in cut_anywhere)]


def blanked(
    reads: Iterable[tuple[int, bytes]], patterns: Iterable[re.Pattern[bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Overwrite secrets in reads by as many asterisks, also where reads or chunks cut them.

    Args:
        reads: One (ns, bytes) per read of one response.
        patterns: What is secret: the second group of each.
    """
    reads = list(reads)
    data = b"".join(part for _, part in reads)
    for pattern in patterns:
        data = pattern.sub(_blank, data)
    begin = 0
    for at_ns, part in reads:
        yield at_ns, data[begin : begin + len(part)]
        begin += len(part)


def _blank(match: re.Match[bytes]) -> bytes:
    """Replace the second group of a match by asterisks, but for the framing of chunks in it."""
    return match[1] + b"".join(
        part if CUT.fullmatch(part) else b"*" * len(part) for part in CUT.split(match[2])
    )


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
        raise BadInput((), f"{path}: {reason}", remedy) from error
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
        return Recording(
            str(about["model"]), tuple(sorted(responses, key=lambda response: response.index))
        )
    except (LookupError, TypeError, ValueError) as error:
        what = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise BadInput((), f"{path}, line {number}: {what}", remedy) from error


def _from_json(line: dict[str, Any]) -> CapturedResponse:
    reads = []
    for at_ns, text, *encoding in line["reads"]:
        if encoding not in ([], ["base64"]):
            raise ValueError(f"{encoding[0]!r} is no encoding of a read")
        reads.append(
            (int(at_ns), base64.b64decode(text, validate=True) if encoding else text.encode())
        )
    line = {"target": 0} | line  # files from before there were several have none
    numbers = {name: int(line[key]) for key, name in NUMBERS.items()}
    return CapturedResponse(**numbers, reads=tuple(reads), end=End(line["end"]))


def first_line(model: str) -> bytes:
    """Return the first line, which says what the file is."""
    about = {"format": FORMAT, "version": VERSION, "loadgen": __version__, "model": model}
    return orjson.dumps(about | {"timing": "recorded", "note": NOTE}) + b"\n"


def to_line(response: CapturedResponse) -> bytes:
    """Return the line of one response in the file."""
    numbers = {key: getattr(response, name) for key, name in NUMBERS.items()}
    reads = [[at_ns, *_encoded(data)] for at_ns, data in response.reads]
    return orjson.dumps(numbers | {"end": response.end, "reads": reads}) + b"\n"


def _encoded(data: bytes) -> tuple[str] | tuple[str, str]:
    """Encode bytes as text where they are text, else as base64 with a mark."""
    with contextlib.suppress(UnicodeDecodeError):
        text = data.decode()
        if PRINTABLE.fullmatch(text):
            return (text,)
    return base64.b64encode(data).decode(), "base64"

"""Captures the responses of a run as the sockets gave them, with their times, to be played again.

While the clock runs, reads are only kept, as they are and within a bound; they are blanked, encoded, compressed and
written once it has ended. Only whole responses are kept: one for which there is no
room is left out, and so is every one that begins after it.
"""

import asyncio
import contextlib
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from loadgen.client.capture_file import CapturedResponse, End, first_line, to_line
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util import files
from loadgen.util.clock import now_ns
from loadgen.util.redaction import secrets, spellings
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap

LIMIT_BYTES = 64 << 20
RESPONSE_BYTES, READ_BYTES = 800, 160  # what each costs in memory beside the bytes that came
CUT = re.compile(rb"(\r\n[0-9A-Fa-f]+(?:;[^\r\n]*)?\r\n)")  # where one chunk of a body ends and the next begins
MAYBE_CUT = CUT.pattern.replace(b"(", b"(?:", 1) + b"?"
SET_COOKIE = re.compile(rb"^(set-cookie:)([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
# Outcomes that say that the response came to its end; after any other it was loadgen that ended it.
WHOLE = (Outcome.OK, Outcome.STATUS, Outcome.EMPTY, Outcome.TRUNCATED)


@dataclass(slots=True)
class _Kept:
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
        self, file: BinaryIO, targets: Sequence[Target], limit_bytes: int = LIMIT_BYTES, *, compressed: bool = False
    ) -> None:
        self._file, self._compressed, self._model = file, compressed, targets[0].model
        self._secrets = list(
            dict.fromkeys(
                pattern for target in targets for each in target.each_class for pattern in patterns(each.headers)
            )
        )
        self._room = limit_bytes
        self._full = self._closed = False
        self._begun = 0
        self._kept: dict[int, _Kept] = {}
        self.start_ns = 0
        self.error: str | None = None

    @classmethod
    @contextlib.contextmanager
    def optional(cls, path: str | None, targets: Sequence[Target]) -> Iterator["Capture | None"]:
        """Open a capture to `path`, gzipped where the name ends in .gz, and write it at the end; None without a path.

        Raises:
            BadInput: The file cannot be written.
        """
        if path is None:
            yield None
            return
        capture = cls(files.create_private("--capture", path), targets, compressed=path.endswith(".gz"))
        try:
            yield capture
        finally:
            capture.close()

    def sent(self, record: Record) -> None:
        """Begin the response of a request that was sent."""
        self._begun += 1
        if not self._full:
            self._kept[record.index] = kept = _Kept(record)
            self._charge(kept, RESPONSE_BYTES)

    def read(self, record: Record, at_ns: int, data: bytes) -> None:
        """Keep `data` of a read; data after the end of the response is dropped."""
        kept = self._kept.get(record.index)
        if kept is not None and record.outcome is None and self._charge(kept, READ_BYTES + len(data)):
            kept.reads.append((at_ns, data))

    def lost(self, record: Record, at_ns: int, error: Exception | None) -> None:
        """End the response of a connection that ended before it."""
        kept = self._kept.get(record.index)
        if kept is not None and record.outcome is None:
            kept.lost_ns, kept.error = at_ns, error

    def about(self) -> dict[str, Any]:
        """Return what was kept, as JSON: responses, left_out (for lack of room), error."""
        return {"responses": len(self._kept), "left_out": self._begun - len(self._kept), "error": self.error}

    def close(self) -> None:
        """Write the captured responses, and close the file; a second close does nothing."""
        if self._closed:
            return
        self._closed = True  # first: it may be called again while it is at work in a thread
        try:
            with self._file, self._written() as file:
                file.write(first_line(self._model))
                for index in sorted(self._kept):
                    file.write(to_line(self._finished(self._kept[index])))
        except OSError as error:
            self.error = error.strerror or str(error)

    def _written(self) -> contextlib.AbstractContextManager[BinaryIO | gzip.GzipFile]:
        if self._compressed:
            return gzip.GzipFile(mode="wb", compresslevel=6, fileobj=self._file)
        return contextlib.nullcontext(self._file)

    def _charge(self, kept: _Kept, cost: int) -> bool:
        """Reserve room for one more part of a response; where there is none, the response is left out."""
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
        ended_ns = kept.lost_ns or record.closed or (kept.reads[-1][0] if kept.reads else record.sent)
        return CapturedResponse(
            record.index,
            record.due - self.start_ns,
            record.sent - self.start_ns,
            record.input_tokens,
            record.output_tokens,
            tuple((at_ns - record.sent, data) for at_ns, data in blanked(kept.reads, self._secrets)),
            end,
            ended_ns - record.sent,
            record.target,
        )


class TappedReader(asyncio.Protocol):
    """aiohttp's reader of a response, with a tap on its input."""

    def __init__(self, reader: Any, record: Record, tap: "Tap") -> None:
        self._reader, self._record, self._tap = reader, record, tap

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        self._tap.read(self._record, now_ns(), data)
        self._reader.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the end of the stream on."""
        self._reader.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end of the connection on."""
        self._tap.lost(self._record, now_ns(), exc)
        self._reader.connection_lost(exc)


def blanked(reads: Iterable[tuple[int, bytes]], patterns: Iterable[re.Pattern[bytes]]) -> Iterator[tuple[int, bytes]]:
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


def patterns(headers: Mapping[str, str]) -> list[re.Pattern[bytes]]:
    """Patterns of what no file may show of responses to requests with these headers: cookies, and the secrets in the
    headers in all their spellings."""
    words = (word.encode("latin-1") for word in spellings(secrets(headers)))
    cut_anywhere = (MAYBE_CUT.join(re.escape(bytes([byte])) for byte in word) for word in words)
    return [SET_COOKIE, *(re.compile(rb"()(%b)" % each) for each in cut_anywhere)]


def _blank(found: re.Match[bytes]) -> bytes:
    """Replace the second group of a match by asterisks, but for the framing of chunks in it."""
    return found[1] + b"".join(part if CUT.fullmatch(part) else b"*" * len(part) for part in CUT.split(found[2]))

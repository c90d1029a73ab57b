"""What a response says, in plain Python: what the compiled wire must agree with, byte for byte.

Written from RFC 9112 (framing), the event stream format of the WHATWG HTML standard,
`loadgen.core.reference_parser` (one event) and the definitions of the outcomes; never from the
compiled code. It reads a whole response at once, each fact with the offset of the wire's byte that
settled it, so that stamps can be foretold for any slicing.

Where the standards leave a choice: a tab separates the parts of a status line as a space does; a
lone LF is no line line end as CR LF is; a list of lengths is refused; an interim response is passed
over; a last event that no blank line ends counts; data without text is none. Limits of size are not
modelled.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from loadgen.core import event_flags, reference_parser, server_times
from loadgen.core.dialect import Dialect
from loadgen.core.finish_reasons import is_failed_answer
from loadgen.core.outcome import Outcome
from tests.helpers.wire_facts import Facts

STATUS_LINE = re.compile(rb"HTTP/1\.(\d)[ \t]([1-9]\d\d)(?:[ \t].*)?", re.DOTALL)
HEAD_END = re.compile(rb"\n\r?\n")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]+)[ \t]*(?:;.*)?", re.DOTALL)
# None may stand inside a line of the head (RFC 9110, 5.5).
BLANKED = bytes.maketrans(b"\r\n\0", b"   ")
BOM = b"\xef\xbb\xbf"
LARGEST = 1 << 40  # bytes of one chunk or body
MAX_SAMPLE = 1024
COUNTS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    "total_tokens",
)
# In place of the name of an event.
ERROR_LINE, OTHER_LINE = (b"\nerror", b"\nother")
MAX_REST_S = 10**6


class Broken(Exception):
    """Bytes that are not the protocol, as the byte at offset `at` shows."""

    def __init__(self, at: int) -> None:
        self.at = at


@dataclass
class Body:
    """What framing leaves: the bytes, where each stood, and how they ended (offset of the last
    byte needed).
    """

    data: bytearray = field(default_factory=bytearray)
    at: list[int] = field(default_factory=list)
    whole: int | None = None
    broken: int | None = None

    def take(self, wire: bytes, start: int, size: int) -> bool:
        """Take `size` bytes from `start`, or as many as there are; whether that was all."""
        piece = wire[start : start + size]
        self.data += piece
        self.at += range(start, start + len(piece))
        return len(piece) == size


def read(wire: bytes, end: str | None = None, dialect: Dialect | None = None) -> Facts:
    """Read a response.

    Args:
        wire: All bytes that came.
        end: None: the connection is open; "": it was closed after them; else: it was reset, and
            this is the error.
        dialect: That of its events; None: they are those of chat.
    """
    facts, start = Facts(dialect=dialect), 0
    try:
        while found := HEAD_END.search(wire, start):
            head_end = found.end()
            headers = Headers(wire[start : found.start()], head_end - 1)
            if headers.status >= 200:
                facts.times = server_times.in_head(wire[start : found.start()])
                _final(wire, head_end, headers, end, facts)
                return facts
            start = head_end
    except Broken as broken:
        facts.ended(Outcome.PROTOCOL_ERROR, broken.at)
        facts.keep_alive = False
        return facts
    if end is not None:
        facts.ended(Outcome.PROTOCOL_ERROR if wire else Outcome.REFUSED, len(wire))
        facts.keep_alive = False
    return facts


class Headers:
    """The head of a response that is whole with the byte at offset `at`."""

    def __init__(self, head: bytes, at: int) -> None:
        unfolded = re.sub(rb"\n(?=[ \t])", b" ", head)
        first, *lines = (line.translate(BLANKED) for line in unfolded.split(b"\n"))
        match = STATUS_LINE.fullmatch(first)
        if match is None or any(b":" not in line for line in lines):
            raise Broken(at)
        self._named = [line.partition(b":") for line in lines]
        self.minor, self.status = int(match[1]), int(match[2])
        lengths = self.values(b"content-length")
        if not all(re.fullmatch(rb"\d+", length) and int(length) <= LARGEST for length in lengths):
            raise Broken(at)
        if len(set(map(int, lengths))) > 1:
            raise Broken(at)
        self.length = int(lengths[0]) if lengths else None
        transfer = self.values(b"transfer-encoding")
        self.chunked = b"chunked" in transfer
        codings = [value for value in transfer if value != b"chunked"] + self.values(
            b"content-encoding"
        )
        self.encoded = any(coding != b"identity" for coding in codings)
        self.streamed = b"json" not in b"".join(self.values(b"content-type")[-1:])
        options = {token for value in self.values(b"connection") for token in _list(value)}
        # HTTP/1.0 has no transfer encodings: one that uses them is not to be trusted further (RFC
        # 9112, 6.1).
        persists = self.minor > 0 or (b"keep-alive" in options and not transfer)
        limits = [option for value in self.values(b"keep-alive") for option in _list(value)]
        ends = any(re.match(rb"(timeout|max)=0+(?!\d)", limit) for limit in limits)
        self.keep_alive = b"close" not in options and persists and not ends

    def values(self, name: bytes) -> list[bytes]:
        """The values of all headers of a name, in lower case."""
        return [
            value.strip(b" \t").lower() for given, _, value in self._named if given.lower() == name
        ]

    @property
    def rest_s(self) -> int:
        rests = [
            re.match(rb"timeout=(\d*)", option)
            for value in self.values(b"keep-alive")
            for option in _list(value)
        ]
        told = [int(match[1] or 0) for match in rests if match]
        return min(told[-1], MAX_REST_S) if told else 0


def _list(value: bytes) -> list[bytes]:
    return [token.strip(b" \t") for token in value.split(b",")]


def _final(wire: bytes, head_end: int, headers: Headers, end: str | None, facts: Facts) -> None:
    facts.status, facts.keep_alive, facts.rest_s = (
        headers.status,
        headers.keep_alive,
        headers.rest_s,
    )
    bodiless = headers.status in (204, 304) or (headers.length == 0 and not headers.chunked)
    if headers.encoded and not bodiless:
        failed = not _is_success(headers.status)
        facts.ended(Outcome.STATUS if failed else Outcome.PROTOCOL_ERROR, head_end - 1)
        facts.keep_alive = False
        return
    body = Body()
    if bodiless:
        body.whole = head_end - 1
    elif headers.chunked:
        _chunks(wire, head_end, body)
    elif headers.length is not None:
        if body.take(wire, head_end, headers.length):
            body.whole = head_end + headers.length - 1
    else:
        body.take(wire, head_end, len(wire) - head_end)
        facts.keep_alive = False
        body.whole = len(wire) if end == "" else None
    if _is_success(headers.status):
        _answer(body, headers, facts)
    if facts.outcome is None:
        _ended(body, len(wire), end, facts)
    if facts.closed + 1 < len(wire):  # bytes that nobody asked for
        facts.keep_alive = False


def _chunks(wire: bytes, start: int, body: Body) -> None:
    while (lf := wire.find(b"\n", start)) >= 0:
        match = CHUNK_LINE.fullmatch(wire[start:lf].removesuffix(b"\r"))
        if match is None or int(match[1], 16) > LARGEST:
            body.broken = lf
            return
        size, start = int(match[1], 16), lf + 1
        if size == 0:
            while (lf := wire.find(b"\n", start)) >= 0:  # trailers, up to an empty line
                if wire[start:lf] in (b"", b"\r"):
                    body.whole = lf
                    return
                start = lf + 1
            return
        if not body.take(wire, start, size):
            return
        start += size
        lf = wire.find(b"\n", start)
        if lf >= 0 and wire[start:lf] not in (b"", b"\r"):
            body.broken = lf
        if lf < 0 or body.broken:
            return
        start = lf + 1


def _answer(body: Body, headers: Headers, facts: Facts) -> None:
    """What a 200 says; leaves it open where its events do not end it."""
    start = bytes(body.data).lstrip(b"\r\n")[:1]
    if not headers.streamed and start and start not in b"deir:":
        if body.whole is not None:
            try:
                error = reference_parser.parse(bytes(body.data)).error
            except ValueError:
                error = None
            facts.keep_alive = False
            facts.ended(
                Outcome.STREAM_ERROR if error else Outcome.PROTOCOL_ERROR, body.whole, error
            )
        return
    for payload, at, cut, name in _events(bytes(body.data), body.at, body.whole):
        if name == ERROR_LINE:
            facts.ended(Outcome.STREAM_ERROR, at, payload.decode("utf-8", "replace"))
            facts.keep_alive = False
            return
        if name == OTHER_LINE:
            facts.leave_unread("line", payload)
            continue
        if facts.done_seen or not payload:
            continue
        if payload == b"[DONE]":
            facts.done_seen = True
            facts.stream.append((event_flags.DONE, at))
            continue
        try:
            delta = reference_parser.parse(
                payload.decode("utf-8", "replace").encode(), facts.dialect
            )
        except ValueError:
            facts.ended(Outcome.TRUNCATED if cut else Outcome.PROTOCOL_ERROR, at)
            if name == b"error":
                facts.ended(Outcome.STREAM_ERROR, at, _sample(payload))
        else:
            if name == b"error":
                facts.ended(Outcome.STREAM_ERROR, at, _sample(payload))
            if delta.error is not None:
                facts.ended(Outcome.STREAM_ERROR, at, delta.error[:MAX_SAMPLE])
        if facts.outcome is not None:
            facts.keep_alive = False
            return
        kinds = delta.kinds if facts.adds(delta) else 0
        if delta.says & event_flags.CUMULATIVE and 0 <= delta.completion_tokens <= sum(
            facts.tokens
        ):
            kinds = 0  # the text so far again, without a token more
        kinds = kinds or event_flags.SILENT * facts.is_silent(delta)
        facts.stream.append((kinds | delta.says, at))
        if kinds:
            facts.bear(kinds, delta, at)
        elif _may_bear_token(delta.says):
            facts.maybe.append(len(facts.stream) - 1)
        for name in delta.unknown:
            facts.leave_unread(name, payload)
        facts.finish_reason = delta.finish_reason or facts.finish_reason
        if delta.matched_stop is not None:
            facts.matched_stop = delta.matched_stop
        facts.nan_events += delta.has_nan
        if delta.times is not None:
            facts.times = (facts.times or {}) | delta.times
        for name in COUNTS:
            if getattr(delta, name) >= 0:
                setattr(facts, name, getattr(delta, name))
    if body.whole is not None:
        _settled(facts, body.whole)


def _may_bear_token(says: int) -> bool:
    if says & event_flags.CUMULATIVE or not says & event_flags.CHOICE:
        return False
    plain = says & (event_flags.EMPTY | event_flags.FINISH) and not says & event_flags.ROLE
    return bool(says & event_flags.BARE or plain)


def _is_success(status: int) -> bool:
    return 200 <= status < 300 and status != 204


def _sample(payload: bytes) -> str:
    return payload[:MAX_SAMPLE].decode("utf-8", "replace")


def _settled(facts: Facts, at: int) -> None:
    """Give an answer that has come to its end its outcome."""
    facts.settle()
    if is_failed_answer(facts.finish_reason, bool(facts.kinds)):
        facts.ended(Outcome.STREAM_ERROR, at, f"the finish reason is {facts.finish_reason}")
    elif not facts.kinds:
        facts.ended(Outcome.EMPTY, at)
    elif facts.finish_reason or facts.done_seen:
        facts.ended(Outcome.OK, at)
    else:
        facts.ended(Outcome.TRUNCATED, at)


def _events(
    body: bytes, at: list[int], whole: int | None
) -> Iterator[tuple[bytes, int, bool, bytes]]:
    """The data of each event, the offset of the byte that ended its blank line, whether the
    body's end did that, and the name of the event. Of a line that is no field of an event: the
    line, or what it says of an error.
    """
    start = 0
    event = b""  # its name
    data: list[bytes] | None = None
    if body.startswith(BOM):
        body, at = body[len(BOM) :], at[len(BOM) :]
    ends = [
        (match.start(), match.end(), at[match.start()])
        for match in re.finditer(rb"\r\n|\r|\n", body)
    ]
    lines = len(ends)
    if whole is not None:
        ends += [
            (len(body), len(body), whole)
        ] * 2  # the end of the body ends the last line and the last event
    for number, (end, after, offset) in enumerate(ends):
        line = body[start:end]
        start = after
        name, _, value = line.partition(b":")
        if name == b"data":
            data = [*(data or []), value.removeprefix(b" ")]
        elif not line:
            if data is not None:
                yield b"\n".join(data), offset, number >= lines, event
            event, data = b"", None
        elif name == b"event":
            event = value[:MAX_SAMPLE].strip()
        elif name == b"error":
            yield value[:MAX_SAMPLE].strip(), offset, False, ERROR_LINE
        elif name not in (b"", b"id", b"retry"):
            yield line, offset, False, OTHER_LINE


def _ended(body: Body, length: int, end: str | None, facts: Facts) -> None:
    """The end of a response that its content has not ended: a status, a cut, broken framing, or
    none yet.
    """
    at = body.whole if body.whole is not None else body.broken
    if at is None and end is None:
        return
    if body.whole is None:
        facts.keep_alive = False
    if not _is_success(facts.status):  # however its body ends
        sample = bytes(body.data[:MAX_SAMPLE]).decode("utf-8", "replace")
        facts.ended(Outcome.STATUS, length if at is None else at, sample)
    elif facts.done_seen or (facts.finish_reason and facts.completion_tokens >= 0):
        _settled(facts, length if body.broken is None else body.broken)
    elif body.broken is not None:
        facts.ended(Outcome.PROTOCOL_ERROR, body.broken)
    else:
        facts.ended(Outcome.TRUNCATED, length, end or "connection closed mid-stream")

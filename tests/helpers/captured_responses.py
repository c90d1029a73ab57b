"""Captured responses as byte lists for the wire, and what each of them says."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loadgen.client import capture_file
from loadgen.client.capture_file import CapturedResponse, End
from loadgen.core import sse_event
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.testing.replies import LAST_CHUNK
from tests.helpers.response_bytes import chunked
from tests.helpers.source import ROOT

FOLDER = ROOT / "tests" / "data" / "captures"
FACTS = ".facts.json"


@dataclass(frozen=True)
class Golden:
    """One response of a file in the folder, and its facts as the file beside it has them."""

    file: str
    response: CapturedResponse
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.file}-{self.response.index}"

    @property
    def wire(self) -> bytes:
        return b"".join(data for _, data in self.response.reads)

    @property
    def head(self) -> bytes:
        return self.wire[: self.wire.index(b"\r\n\r\n") + 4]

    @property
    def is_stream(self) -> bool:
        return b"text/event-stream" in self.head

    @property
    def body(self) -> bytes:
        """The body, free of its chunks."""
        rest = self.wire[len(self.head) :]
        if b"chunked" not in self.head.lower():
            return rest
        body = b""
        while size := re.match(rb"([0-9a-fA-F]+)[^\r\n]*\r\n", rest):
            end = size.end() + int(size[1], 16)
            body += rest[size.end() : end]
            rest = rest[end + 2 :]
        return body

    def with_line_ends(self, line_end: bytes) -> bytes:
        """The same response, its lines ended otherwise and its chunks cut elsewhere."""
        body = self.body.replace(b"\r\n", b"\n").replace(b"\n", line_end)
        if b"chunked" not in self.head.lower():
            return re.sub(rb"(?i)content-length: \d+", b"Content-Length: %d" % len(body), self.head) + body
        framed = chunked(body, 997)
        return self.head + (framed if self.wire.endswith(LAST_CHUNK) else framed.removesuffix(LAST_CHUNK))

    @property
    def said(self) -> dict[str, Any]:
        """The facts that a Record shows: not how many events there were in all."""
        return {name: fact for name, fact in self.facts.items() if name != "events"}


def goldens() -> list[Golden]:
    """Every response of the folder."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl*")):
        name = path.name.partition(".")[0]
        responses = capture_file.load(str(path)).responses
        beside = FOLDER / (name + FACTS)
        facts = json.loads(beside.read_text()) if beside.exists() else [{}] * len(responses)
        assert len(facts) == len(responses), f"{beside.name} has to have one object for each response"
        found += [Golden(name, r, f) for r, f in zip(responses, facts, strict=True)]
    return found


def told(golden: Golden, parts: Iterable[bytes]) -> dict[str, Any]:
    """What the wire says of a response that comes in these parts and ends as it ended."""
    response, record = Response(), Record(due=1)
    response.begin(record)
    for part in parts:
        response.feed(part, 1_000_000)
    assert not response.wants_reader, "the body is compressed: aiohttp's reader undoes that, and this test has none"
    if golden.response.end is End.CLIENT:
        response.abandon(Outcome.CANCELLED, "loadgen gave up here", 2_000_000)
    elif golden.response.end is not End.RESPONSE and not response.complete:
        response.eof(2_000_000, "reset" if golden.response.end is End.RESET else None)
    return {
        "outcome": str(record.outcome),
        "status": record.status,
        "content_events": record.content_events,
        "reasoning_events": record.reasoning_events,
        "other_events": record.other_events,
        "completion_tokens": None if record.completion_tokens < 0 else record.completion_tokens,
        "finish_reason": record.finish_reason,
        "done": record.done_seen,
    }


def payloads(golden: Golden) -> list[bytes]:
    """The data of every event but [DONE], cut out in the plainest way; nothing where the body is no stream."""
    if not golden.is_stream:
        return []
    lines = golden.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    data = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
    return [payload for payload in data if payload != b"[DONE]"]


def parsed(golden: Golden) -> list[sse_event.Delta]:
    """Every event as a JSON parser reads it."""
    return [sse_event.parse(payload) for payload in payloads(golden)]

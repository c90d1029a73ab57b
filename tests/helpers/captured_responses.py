"""Captured responses as byte lists for the wire, and what each of them says."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from loadgen.core import reference_parser
from loadgen.core.dialect import Delta
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK
from loadgen.features import capture
from loadgen.features.capture import CapturedResponse, End
from loadgen.workload import endpoints
from loadgen.workload.endpoints import Api
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
            return (
                re.sub(rb"(?i)content-length: \d+", b"Content-Length: %d" % len(body), self.head)
                + body
            )
        framed = chunked(body, 997)
        return self.head + (
            framed if self.wire.endswith(LAST_CHUNK) else framed.removesuffix(LAST_CHUNK)
        )

    @property
    def said(self) -> dict[str, Any]:
        """The facts that a Record shows: not what was asked, nor how many events there were in
        all.
        """
        return {
            name: fact
            for name, fact in self.facts.items()
            if name not in ("backend", "whole", "events")
        }

    @property
    def api(self) -> Api:
        """The API of the request; chat completions unless the facts name another backend."""
        return endpoints.named(self.facts.get("backend", "openai-chat"))

    @property
    def asked(self) -> Record:
        """The record of a request that asked for this response."""
        record = Record(due=1)
        record.is_whole = self.facts.get("whole", False)
        record.results = -1 if self.api.length_field else 0
        return record


def goldens() -> list[Golden]:
    """Every response of the folder."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl*")):
        name = path.name.partition(".")[0]
        responses = capture.load(str(path)).responses
        beside = FOLDER / (name + FACTS)
        facts = json.loads(beside.read_text()) if beside.exists() else [{}] * len(responses)
        assert len(facts) == len(responses), (
            f"{beside.name} has to have one object for each response"
        )
        found += [Golden(name, r, f) for r, f in zip(responses, facts, strict=True)]
    return found


def told(golden: Golden, parts: Iterable[bytes]) -> dict[str, Any]:
    """What the wire says of a response that comes in these parts and ends as it ended."""
    dialect = golden.api.dialect
    response, record = Response(None if dialect is None else DialectScanner(dialect)), golden.asked
    response.begin(record)
    for part in parts:
        response.feed(part, 1_000_000)
    if golden.response.end is End.CLIENT:
        response.abandon(Outcome.CANCELLED, "loadgen gave up here", 2_000_000)
    elif golden.response.end is not End.RESPONSE and not response.complete:
        response.eof(2_000_000, "reset" if golden.response.end is End.RESET else None)
    results = {"results": record.results} if record.results >= 0 else {}
    return {
        "outcome": str(record.outcome),
        "status": record.status,
        "content_events": record.content_events,
        "reasoning_events": record.reasoning_events,
        "other_events": record.other_events,
        "prompt_tokens": None if record.prompt_tokens < 0 else record.prompt_tokens,
        "completion_tokens": None if record.completion_tokens < 0 else record.completion_tokens,
        "finish_reason": record.finish_reason,
        "done": record.done_seen,
    } | results


def recorded(golden: Golden) -> Record:
    """The record of a whole response of chat or completions, whose parts come when they came."""
    response, record = Response(), golden.asked
    response.begin(record)
    for at_ns, data in golden.response.reads:
        response.feed(data, at_ns)
    return record


def payloads(golden: Golden) -> list[bytes]:
    """The data of every event but [DONE], cut out in the plainest way; nothing where the body is
    no stream.
    """
    if not golden.is_stream:
        return []
    lines = golden.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    data = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
    return [payload for payload in data if payload != b"[DONE]"]


def parsed(golden: Golden) -> list[Delta]:
    """Every event as a JSON parser reads it."""
    return [reference_parser.parse(payload, golden.api.dialect) for payload in payloads(golden)]


def usage(golden: Golden) -> tuple[int | None, int | None]:
    """The server's counts of input and output tokens: the largest under any `usage` in the body.

    Neither the compiled reader nor the parser is used.
    """
    found = [
        usage for text in payloads(golden) or [golden.body] for usage in _usages(json.loads(text))
    ]
    outputs = [usage.get("completion_tokens", usage.get("output_tokens")) for usage in found]
    return _largest(map(_input, found)), _largest(outputs) if golden.api.length_field else 0


def _largest(counts: Iterable[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def _input(usage: dict[str, Any]) -> int | None:
    """Anthropic's `input_tokens` are those that were not in the cache."""
    if "cache_read_input_tokens" in usage:
        return sum(
            usage.get(f"{name}input_tokens") or 0 for name in ("", "cache_read_", "cache_creation_")
        )
    return usage.get("prompt_tokens", usage.get("input_tokens", usage.get("total_tokens")))


def _usages(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("usage"), dict):
            yield value["usage"]
        for inner in value.values():
            yield from _usages(inner)

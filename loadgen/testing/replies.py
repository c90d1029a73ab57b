"""Replies: the bytes of HTTP responses and server-sent events, built from parts so that any part can be wrong."""

import http
from typing import Any

import orjson

from loadgen.engines.sim.api_format import typed_event as typed_event
from loadgen.engines.sim.http1 import LAST_CHUNK as LAST_CHUNK
from loadgen.engines.sim.http1 import chunk as chunk

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
STREAM = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
JSON, BINARY = "application/json", "application/octet-stream"


def event(**fields: Any) -> bytes:
    """Return an event with a JSON object as data."""
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    """Return an event of a chat completion; the delta of its only choice has `fields`."""
    return event(id="x", choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def usage(**counts: Any) -> bytes:
    """Return the event with the token counts and without a choice."""
    return event(id="x", choices=[], usage=counts)


def answer(*words: str, finish: str = "stop") -> bytes:
    """Return the events of a complete chat completion, one for each word."""
    return delta(role="assistant", content="") + b"".join(delta(content=word) for word in words) + delta(finish) + DONE


def chunked(body: bytes, size: int = 100) -> bytes:
    """Return a complete body in chunks of at most `size` bytes."""
    return b"".join(chunk(body[i : i + size]) for i in range(0, len(body), size)) + LAST_CHUNK


def streamed(body: bytes, size: int = 100) -> bytes:
    """Return a complete response that streams `body` in chunks of at most `size` bytes."""
    return STREAM + chunked(body, size)


def whole(status: int, body: bytes, *headers: str, kind: str = JSON) -> bytes:
    """Return a complete response with Content-Length; `kind` is its content type."""
    line = f"HTTP/1.1 {status} {PHRASES.get(status, 'Unknown')}"
    lines = [line, f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def models(*names: str) -> bytes:
    """Return the body of GET /v1/models for a server with these models."""
    rows = [{"id": name, "object": "model", "owned_by": "loadgen"} for name in names]
    return orjson.dumps({"object": "list", "data": rows})


def error_body(message: str, code: int, param: str | None = None) -> bytes:
    """Return the error object of OpenAI-compatible servers as JSON; `param` is the field at fault."""
    kind = "invalid_request_error" if param else "server_error"
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})

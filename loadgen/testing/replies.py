"""Replies: the bytes of HTTP responses and server-sent events, built by hand so that any of them can be wrong."""

import http
from typing import Any

import orjson

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
STREAM = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
JSON, BINARY = "application/json", "application/octet-stream"


def event(**fields: Any) -> bytes:
    """One event whose payload is a JSON object."""
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    """One event of a chat completion: its only choice's delta has `fields`."""
    return event(id="x", choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def usage(**counts: Any) -> bytes:
    """The event that tells the counts of tokens, and has no choice."""
    return event(id="x", choices=[], usage=counts)


def answer(*words: str, finish: str = "stop") -> bytes:
    """The events of a whole chat completion, one for each word."""
    return delta(role="assistant", content="") + b"".join(delta(content=word) for word in words) + delta(finish) + DONE


def chunk(data: bytes) -> bytes:
    """One chunk of the chunked transfer coding."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunked(body: bytes, size: int = 100) -> bytes:
    """A whole body in chunks of at most `size` bytes."""
    return b"".join(chunk(body[i : i + size]) for i in range(0, len(body), size)) + LAST_CHUNK


def streamed(body: bytes, size: int = 100) -> bytes:
    """A whole response that streams `body` in chunks of at most `size` bytes."""
    return STREAM + chunked(body, size)


def whole(status: int, body: bytes, *headers: str, kind: str = JSON) -> bytes:
    """A whole response in one piece, JSON unless it is of another `kind`."""
    line = f"HTTP/1.1 {status} {PHRASES.get(status, 'Unknown')}"
    lines = [line, f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def models(name: str) -> bytes:
    """What GET /v1/models brings from a server that has one model."""
    return orjson.dumps({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "loadgen"}]})


def error_body(message: str, code: int, param: str | None = None) -> bytes:
    """The JSON object in which OpenAI-compatible servers tell an error; `param` is the field at fault."""
    kind = "invalid_request_error" if param else "server_error"
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})

"""Faults that show in the status, or in a body that is not a stream."""

import orjson

from loadgen.testing.faults.connections import good
from loadgen.testing.faults.fault import Steps, fault
from loadgen.testing.replies import error_body, whole
from loadgen.testing.request import Request

RETRY_AFTER = {429, 503}


@fault
def status(request: Request, code: int = 500) -> Steps:
    """Answers with the HTTP status NUMBER and an error as JSON; 429 and 503 with Retry-After: 1."""
    headers = ["Retry-After: 1"] if code in RETRY_AFTER else []
    yield whole(code, error_body(f"the fault status:{code}", code), *headers)


@fault
def redirect(request: Request, code: int = 307) -> Steps:
    """Answers with the redirect NUMBER, to where an answer would be good."""
    yield whole(code, b"{}", "Location: /elsewhere/v1/chat/completions")


@fault
def json_error(request: Request) -> Steps:
    """Answers 200 with an error as JSON."""
    yield whole(200, error_body("the fault json-error", 500))


@fault
def json_answer(request: Request) -> Steps:
    """Answers 200 with the whole answer as one JSON object, although a stream was requested."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "all of it"}, "finish_reason": "stop"}
    yield whole(200, orjson.dumps({"id": "x", "choices": [choice], "usage": {"completion_tokens": 3}}))


@fault
def not_http(request: Request) -> Steps:
    """Answers with the greeting of another protocol."""
    yield b"SSH-2.0-OpenSSH_9.6\r\n\r\n"


@fault
def interim(request: Request) -> Steps:
    """Sends an interim response (103) before a good one."""
    yield b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    yield from good(request)

"""Faults that show in the status, or in a body that is not a stream."""

import orjson

from loadgen.testing.faults.connections import good
from loadgen.testing.faults.fault import Steps, always, fault
from loadgen.testing.replies import error_body, whole
from loadgen.testing.request import Request

RETRY_AFTER = {429, 503}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "all of it"}, "finish_reason": "stop"}


@fault
def status(request: Request, code: int = 500) -> Steps:
    """Answers with the HTTP status NUMBER and an error as JSON; 429 and 503 with Retry-After: 1."""
    headers = ["Retry-After: 1"] if code in RETRY_AFTER else []
    return [whole(code, error_body(f"the fault status:{code}", code), *headers)]


@fault
def redirect(request: Request, code: int = 307) -> Steps:
    """Answers with the redirect NUMBER, to where an answer would be good."""
    return [whole(code, b"{}", "Location: /elsewhere/v1/chat/completions")]


always("json-error", "Answers 200 with an error as JSON.", whole(200, error_body("the fault json-error", 500)))
always(
    "json-answer",
    "Answers 200 with the whole answer as one JSON object, although a stream was requested.",
    whole(200, orjson.dumps({"id": "x", "choices": [CHOICE], "usage": {"completion_tokens": 3}})),
)
always("not-http", "Answers with the greeting of another protocol.", b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


@fault
def interim(request: Request) -> Steps:
    """Sends an interim response (103) before a good one."""
    return [b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n", *good(request)]

"""The history of a session: what of an answer later turns repeat."""

import pytest

from loadgen.client.sessions import NO_CONTENT, _sendable
from loadgen.core.http1 import Response
from loadgen.core.record import Record
from tests.helpers.response_bytes import DONE, delta, streamed


@pytest.mark.parametrize(
    ("body", "repeated"),
    [
        (delta(content="yes"), b"yes"),
        (delta(reasoning="hm"), NO_CONTENT),
        (delta(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]), NO_CONTENT),
    ],
    ids=["content", "thoughts", "tool call"],
)
def test_history_has_no_empty_answer(body: bytes, repeated: bytes) -> None:
    response, record = Response(), Record()
    record.keeps_answer = True
    response.begin(record)
    response.feed(streamed(body + delta("stop") + DONE, 10_000), 1)
    assert _sendable(record) == repeated

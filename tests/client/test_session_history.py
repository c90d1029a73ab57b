"""The history of a session: what of an answer later turns repeat."""

from pathlib import Path

import orjson
import pytest

from loadgen.client.sessions import NO_CONTENT, OpenSessions
from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.workload import request_store
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt
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
def test_history_has_no_empty_answer(tmp_path: Path, body: bytes, repeated: bytes) -> None:
    first = Prompt("a", 1, 1, "test/0")
    messages = ({"role": "assistant", "content": ANSWER},)
    second = Prompt("", UNPLANNED, 1, "test/1", messages, after=(1,))
    request_store.write(tmp_path, [first, second], lambda p: orjson.dumps(p.messages), dict, 2)
    response, record = Response(), Record()
    record.keeps_answer, record.turn = True, 0
    response.begin(record)
    response.feed(streamed(body + delta("stop") + DONE, 10_000), 1)
    with request_store.Requests(tmp_path) as requests:
        sessions = OpenSessions(requests, 2)
        sessions.next_due(record)
        assert sessions.body(1) == b'[{"role":"assistant","content":"%b"}]' % repeated

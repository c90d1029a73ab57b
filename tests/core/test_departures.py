"""A response whose user leaves after some tokens ends with them, in every form of stream."""

import pytest

from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing.replies import STREAM, delta, event
from loadgen.workload.endpoints.generation import MESSAGES
from tests.helpers.response_bytes import DONE, answer


def leaving(tokens: int) -> Record:
    """A request whose user leaves after some tokens."""
    record = Record(due=1)
    record.end_after_tokens = tokens
    record.ends_as = Outcome.DISCONNECTED, "the user left"
    return record


def read(
    parts: list[bytes], tokens: int, scanner: DialectScanner | None = None
) -> tuple[Response, Record]:
    """Feed the head and chunks, the n-th of which comes at n ms, to a response whose user leaves
    after some tokens.
    """
    response, record = Response(scanner), leaving(tokens)
    response.begin(record)
    response.feed(STREAM, 1)
    for number, part in enumerate(parts, 1):
        response.feed(chunk(part), number * 1_000_000)
    if not response.complete:
        response.feed(LAST_CHUNK, (len(parts) + 1) * 1_000_000)
    return response, record


WORDS = [delta(content="a"), delta(content="b"), delta(content="c"), delta("stop"), DONE]


def test_the_stream_ends_with_the_token_after_which_the_user_leaves() -> None:
    response, record = read(WORDS, 2)
    assert (record.outcome, record.detail) == (Outcome.DISCONNECTED, "the user left after 2 tokens")
    assert (record.events, record.closed, record.finish_reason) == (2, 2_000_000, None)
    assert response.complete
    assert not response.keep_alive


def test_an_answer_of_fewer_tokens_ends_well() -> None:
    response, record = read(WORDS, 4)
    assert (record.outcome, record.events) == (Outcome.OK, 3)
    assert response.keep_alive


def test_a_user_who_has_the_whole_answer_does_not_leave() -> None:
    whole = event(choices=[{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}])
    _, record = read([delta(content="a"), whole, DONE], 2)
    assert (record.outcome, record.events) == (Outcome.OK, 2)


def test_events_of_several_tokens_count_by_their_tokens() -> None:
    three = event(
        choices=[
            {"index": 0, "delta": {"content": "abc"}, "logprobs": None, "token_ids": [1, 2, 3]}
        ]
    )
    _, record = read([three, three, delta("stop"), DONE], 4)
    assert (record.outcome, record.counted, record.events) == (Outcome.DISCONNECTED, 6, 2)


def test_an_error_in_the_stream_before_is_the_outcome() -> None:
    _, record = read(
        [delta(content="a"), event(error={"message": "no", "code": 500}), delta(content="b")], 2
    )
    assert (record.outcome, record.events) == (Outcome.STREAM_ERROR, 1)


def test_a_connection_that_carries_the_next_request_reads_it_to_the_end() -> None:
    response, _ = read(WORDS, 4)
    record = Record(1)
    response.begin(record)
    response.feed(STREAM + chunk(answer("a", "b")) + LAST_CHUNK, 9_000_000)
    assert (record.outcome, record.events) == (Outcome.OK, 2)


def test_events_of_a_dialect_count_too() -> None:
    def text(word: str) -> bytes:
        delta = f'{{"type":"text_delta","text":"{word}"}}'
        data = f'{{"type":"content_block_delta","index":0,"delta":{delta}}}'
        return f"event: content_block_delta\ndata: {data}\n\n".encode()

    assert MESSAGES.dialect is not None
    _, record = read([text("a"), text("b"), text("c")], 2, DialectScanner(MESSAGES.dialect))
    assert (record.outcome, record.events) == (Outcome.DISCONNECTED, 2)


@pytest.mark.parametrize(
    "head", [b"Content-Type: application/json\r\n", b""], ids=["labelled as JSON", "until close"]
)
def test_a_stream_in_any_framing_is_left(head: bytes) -> None:
    response, record = Response(), leaving(2)
    response.begin(record)
    response.feed(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", 1)
    for at_ns, word in enumerate(WORDS, 2):
        response.feed(word, at_ns)
    assert (record.outcome, record.events, record.closed) == (Outcome.DISCONNECTED, 2, 3)


@pytest.mark.parametrize(
    ("head", "value"),
    [
        (b"Retry-After: 7\r\n", "7"),
        (b"RETRY-AFTER:Wed, 21 Oct 2026 07:28:00 GMT\r\n", "Wed, 21 Oct 2026 07:28:00 GMT"),
        (b"", None),
    ],
)
def test_a_refusal_keeps_its_retry_after(head: bytes, value: str | None) -> None:
    response, record = Response(), Record()
    response.begin(record)
    response.feed(b"HTTP/1.1 429 Too Many Requests\r\n" + head + b"Content-Length: 0\r\n\r\n", 1)
    assert (record.outcome, record.retry_after) == (Outcome.STATUS, value)

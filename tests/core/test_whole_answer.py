"""Answers in one piece: embeddings, pooled states and scores, as one event that comes with the
last byte.
"""

from typing import Any

import orjson
import pytest

from loadgen.core import pooled_answer
from loadgen.core.event_flags import RESULT
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.stream_events import events

USAGE = {
    "prompt_tokens": 7,
    "total_tokens": 7,
    "completion_tokens": 0,
    "prompt_tokens_details": None,
}
EMBEDDING = {"index": 0, "object": "embedding", "embedding": [0.25, -1e-05]}
EMBEDDINGS = orjson.dumps(
    {"object": "list", "data": [EMBEDDING, EMBEDDING], "model": "m", "usage": USAGE}
)
SCORES = orjson.dumps(
    {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 9}}
)


def response(
    body: bytes, status: str = "200 OK", kind: str = "application/json", length: int | None = None
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: "
        f"{len(body) if length is None else length}\r\n"
    )
    return head.encode() + b"\r\n" + body


def read(data: bytes, step: int = 1 << 20) -> tuple[Response, Record]:
    """The n-th slice arrives at n ms."""
    reader, record = Response(), Record(due=1)
    record.results = 0
    reader.begin(record)
    for number, start in enumerate(range(0, len(data), step), 1):
        reader.feed(data[start : start + step], number * 1_000_000)
    return reader, record


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_embeddings_are_one_event_at_the_last_byte(step: int) -> None:
    data = response(EMBEDDINGS)
    reader, record = read(data, step)
    last_ms = -(-len(data) // step)
    assert (record.outcome, record.results, record.events) == (Outcome.OK, 2, 1)
    assert record.first_token == record.last_token == record.closed == last_ms * 1_000_000
    assert [one.says for one in events(record) or ()] == [RESULT]
    assert reader.keep_alive


def test_an_embedding_has_input_tokens_and_no_output_tokens() -> None:
    _, record = read(response(EMBEDDINGS))
    assert (record.prompt_tokens, record.answer_tokens, record.counted) == (7, 0, 0)
    assert record.counts_tokens
    assert record.tpot_ns is None


def test_scores_count_their_input_by_the_total() -> None:
    _, record = read(response(SCORES))
    assert (record.outcome, record.results, record.prompt_tokens) == (Outcome.OK, 1, 9)


def test_chunked_answers_end_with_the_last_chunk() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    _, record = read(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(SCORES), SCORES), 16)
    assert (record.outcome, record.results) == (Outcome.OK, 1)


def test_an_answer_need_not_be_labelled_as_json() -> None:
    _, record = read(response(EMBEDDINGS, kind="text/plain"))
    assert record.outcome is Outcome.OK


def test_an_answer_without_usage_leaves_the_input_unknown() -> None:
    _, record = read(response(b'{"data":[{"embedding":[1]}]}'))
    assert (record.outcome, record.prompt_tokens) == (Outcome.OK, -1)


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (response(b'{"error":{"message":"too long"}}'), Outcome.STREAM_ERROR),
        (response(b'{"object":"error","message":"too long"}'), Outcome.STREAM_ERROR),
        (response(b'{"error":"no"}', status="400 Bad Request"), Outcome.STATUS),
        (response(b'{"data":[]}'), Outcome.EMPTY),
        (response(b'{"data":[{"index":0,"object":"embedding"}]}'), Outcome.PROTOCOL_ERROR),
        (response(b'{"data":[null]}'), Outcome.PROTOCOL_ERROR),
        (response(b'{"choices":[]}'), Outcome.PROTOCOL_ERROR),
        (response(b"data: {}\n\n", kind="text/event-stream"), Outcome.PROTOCOL_ERROR),
        (response(b""), Outcome.PROTOCOL_ERROR),
        (response(b"[1]"), Outcome.PROTOCOL_ERROR),
    ],
)
def test_what_is_no_answer_fails(data: bytes, outcome: Outcome) -> None:
    _, record = read(data)
    assert (record.outcome, record.events, record.last_token) == (outcome, 0, 0)


def test_an_answer_that_breaks_off_is_truncated() -> None:
    reader, record = read(response(EMBEDDINGS, length=len(EMBEDDINGS) + 1))
    reader.eof(9_000_000)
    assert record.outcome is Outcome.TRUNCATED


def test_an_embedding_of_a_stream_is_refused_as_before() -> None:
    reader, record = Response(), Record(due=1)
    reader.begin(record)
    reader.feed(response(EMBEDDINGS), 1)
    assert record.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "answer",
    [
        {"data": [1, 2, 3], "usage": USAGE},
        {"results": [{"a": 1}], "usage": USAGE | {"prompt_tokens_details": {"cached_tokens": 4}}},
        {"data": [{"embedding": 'AB"\\'}], "usage": None},
        {"data": [[]], "error": None},
    ],
)
def test_the_scanner_reads_what_the_parser_reads(answer: dict[str, Any]) -> None:
    body = orjson.dumps(answer)
    parsed = pooled_answer.parse_pooled(body)
    _, record = read(response(body))
    assert (record.results, record.prompt_tokens, record.cached_tokens) == (
        parsed.results,
        parsed.prompt_tokens,
        parsed.cached_tokens,
    )


def test_nan_in_an_embedding_is_counted() -> None:
    _, record = read(response(b'{"data":[{"embedding":[NaN]}]}'))
    assert (record.outcome, record.nan_events) == (Outcome.OK, 1)


@pytest.mark.parametrize(
    ("texts", "outcome"), [(0, Outcome.OK), (2, Outcome.OK), (3, Outcome.PROTOCOL_ERROR)]
)
def test_there_is_a_result_for_each_text(texts: int, outcome: Outcome) -> None:
    reader, record = Response(), Record(due=1)
    record.results, record.texts = 0, texts
    reader.begin(record)
    reader.feed(response(EMBEDDINGS), 1_000_000)
    assert record.outcome is outcome
    assert (record.detail or "2 results for 3 texts") == "2 results for 3 texts"


# -- texts

COUNTS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
CHAT = {
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "a b c"},
            "finish_reason": "length",
        }
    ]
}
COMPLETION = {"choices": [{"index": 0, "text": "a b c", "finish_reason": "length"}]}
META = {
    "finish_reason": {"type": "length", "length": 3},
    "prompt_tokens": 7,
    "completion_tokens": 3,
}
TEXTS = {
    "chat": CHAT | {"usage": COUNTS},
    "completions": COMPLETION | {"usage": COUNTS},
    "generate": {"text": "a b c", "meta_info": META},
}


def read_text(body: Any, **options: Any) -> Record:
    """Read a text in one piece, a byte each ms."""
    data = response(body if isinstance(body, bytes) else orjson.dumps(body), **options)
    reader, record = Response(), Record(due=1)
    record.is_whole = record.keeps_answer = True
    reader.begin(record)
    for number, at in enumerate(range(len(data)), 1):
        reader.feed(data[at : at + 1], number * 1_000_000)
    assert reader.complete
    return record


@pytest.mark.parametrize("api", TEXTS)
def test_a_text_is_one_event_with_all_its_tokens_at_the_last_byte(api: str) -> None:
    record = read_text(TEXTS[api])
    assert (record.outcome, record.events, record.finish_reason) == (Outcome.OK, 1, "length")
    assert record.first_token == record.last_token == record.closed
    assert (record.prompt_tokens, record.answer_tokens, record.counted) == (7, 3, 3)
    assert record.generated_text == "a b c"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b"data: x", Outcome.PROTOCOL_ERROR),
        (b"[1]", Outcome.PROTOCOL_ERROR),
        (b'{"choices":[]}', Outcome.EMPTY),
        (orjson.dumps({"error": {"message": "no"}}), Outcome.STREAM_ERROR),
        (
            orjson.dumps({"choices": [{"index": 0, "text": "a", "finish_reason": None}]}),
            Outcome.TRUNCATED,
        ),
        (
            orjson.dumps({"choices": [{"index": 0, "text": "a"}, {"index": 1, "text": "b"}]}),
            Outcome.PROTOCOL_ERROR,
        ),
    ],
)
def test_what_is_no_text_in_one_piece_fails(body: bytes, outcome: Outcome) -> None:
    assert read_text(body).outcome == outcome


def test_the_status_stays_the_outcome_of_a_text() -> None:
    assert read_text(b"busy", status="503 Busy").outcome == Outcome.STATUS

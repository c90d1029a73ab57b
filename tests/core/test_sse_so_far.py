"""Events of SGLang's own API: text, counts and finish reason of the answer so far."""

from typing import Any

import pytest

from loadgen.core.event_flags import CUMULATIVE
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import DONE, event, slices, streamed
from tests.helpers.stream_events import events

LENGTH = {"type": "length", "length": 3}


def so_far(text: str, tokens: int, finish: dict[str, Any] | None = None, **more: Any) -> bytes:
    counts = {
        "id": "x",
        "finish_reason": finish,
        "prompt_tokens": 9,
        "completion_tokens": tokens,
        "cached_tokens": 4,
    }
    return event(text=text, output_ids=list(range(tokens)), meta_info=counts | more)


def record_of(body: bytes, **keeps: bool) -> Record:
    """One event arrives each ms."""
    response, record = Response(), Record(due=1)
    for name, value in keeps.items():
        setattr(record, name, value)
    response.begin(record)
    for number, part in enumerate(slices(streamed(body, 10_000), 10_000), 1):
        response.feed(part, number * 1_000_000)
    assert response.complete
    return record


ANSWER = so_far("a", 1) + so_far("a b", 2) + so_far("a b c", 3, LENGTH) + DONE


def test_each_event_bears_the_tokens_that_it_counts_more() -> None:
    record = record_of(ANSWER)
    assert (record.outcome, record.events, record.finish_reason) == (Outcome.OK, 3, "length")
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (9, 3, 4)
    assert all(one.says & CUMULATIVE for one in (events(record) or ())[:3])


def test_an_event_may_bear_several_tokens() -> None:
    record = record_of(so_far("a b", 2) + so_far("a b c d e", 5, LENGTH) + DONE)
    assert record.token_counts == [2, 3]


@pytest.mark.parametrize(
    "finish", [LENGTH, {"type": "stop", "matched": 7}, {"type": "stop", "matched": "\n\n"}]
)
def test_the_same_text_again_is_no_token(finish: dict[str, Any]) -> None:
    record = record_of(so_far("a", 1) + so_far("a b", 2) + so_far("a b", 2, finish) + DONE)
    assert (record.events, record.token_counts or [1, 1], record.finish_reason) == (
        2,
        [1, 1],
        finish["type"],
    )
    assert record.matched_stop == finish.get("matched")


@pytest.mark.parametrize(
    "texts", [("a", 'a "b"', 'a "b" é'), ("a", ' "b"', " é")], ids=["so far", "incremental"]
)
@pytest.mark.parametrize("finish", [LENGTH, {"type": "stop", "matched": 7}])
def test_the_text_is_kept_once(texts: tuple[str, str, str], finish: dict[str, Any]) -> None:
    body = b"".join(
        so_far(text, number, finish if number == 3 else None)
        for number, text in enumerate(texts, 1)
    )
    record = record_of(body + DONE, keeps_text=True, keeps_answer=True)
    assert record.text == record.answer_text == 'a "b" é'


def test_an_error_ends_the_stream() -> None:
    record = record_of(so_far("a", 1) + event(error={"message": "aborted"}) + DONE)
    assert (record.outcome, record.detail) == (Outcome.STREAM_ERROR, '{"message":"aborted"}')


def test_an_aborted_answer_is_an_error() -> None:
    aborted = {"type": "abort", "message": "too long", "status_code": 400}
    record = record_of(so_far("a", 1) + so_far("a b", 2, aborted) + DONE)
    assert record.outcome is Outcome.STREAM_ERROR
    assert record.detail == '{"type":"abort","message":"too long","status_code":400}'


def test_a_second_answer_of_one_request_is_refused() -> None:
    body = event(text="a", index=1, meta_info={"completion_tokens": 1, "finish_reason": None})
    assert record_of(body + DONE).outcome is Outcome.PROTOCOL_ERROR

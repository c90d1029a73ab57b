"""What servers and gateways send that no standard asks for: each answer is read, or refused in
one clear line.
"""

import pytest

from loadgen.core.answer import BY_EVENTS, BY_USAGE
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import (
    DONE,
    HEAD,
    answer,
    chunked,
    delta,
    event,
    read,
    slices,
    streamed,
    usage,
)

STREAM = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FINISH = delta("stop")


def spaced(*events: bytes) -> Record:
    """The record of a stream whose events come one a millisecond."""
    parts = [b"%x\r\n%s\r\n" % (len(one), one) for one in events]
    return read([STREAM + parts[0], *parts[1:], b"0\r\n\r\n"])[1]


def counts(completion: int, hidden: int | None) -> bytes:
    return usage(
        prompt_tokens=9,
        completion_tokens=completion,
        completion_tokens_details={"reasoning_tokens": hidden},
    )


WORDS = [delta(content="x") for _ in range(10)]


# -- tokens that were never streamed


def test_hidden_reasoning_is_in_no_decode_time() -> None:
    record = spaced(*WORDS, FINISH, counts(510, 500))
    assert (record.reasoning_tokens, record.hidden_tokens) == (500, 500)
    assert record.tpot_ns == 1_000_000
    assert record.answer_tokens == 510


def test_streamed_reasoning_is_not_hidden() -> None:
    record = spaced(delta(reasoning="hm"), *WORDS, FINISH, counts(101, 50))
    assert (record.hidden_tokens, record.tpot_ns) == (0, 100_000)


@pytest.mark.parametrize(
    ("completion", "hidden", "taken"), [(10, 500, 0), (12, 500, 2), (510, 0, 0), (510, None, 0)]
)
def test_hidden_tokens_are_at_most_the_unseen(
    completion: int, hidden: int | None, taken: int
) -> None:
    assert spaced(*WORDS, FINISH, counts(completion, hidden)).hidden_tokens == taken


def test_usage_per_event_has_hidden_tokens_in_the_first() -> None:
    told = [
        event(
            choices=[{"index": 0, "delta": {"content": "x"}}],
            usage={
                "completion_tokens": 500 + n,
                "completion_tokens_details": {"reasoning_tokens": 500},
            },
        )
        for n in range(1, 5)
    ]
    record = spaced(*told, FINISH)
    assert (record.counted_by, record.hidden_tokens, record.tpot_ns) == (BY_USAGE, 0, 1_000_000)


@pytest.mark.parametrize(
    "told",
    [
        {"prompt_tokens": 9},
        {"prompt_tokens": 9, "completion_tokens": None},
        {"prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}},
        {"prompt_tokens": 9, "completion_tokens_details": None},
    ],
)
def test_usage_without_completion_tokens_keeps_the_rest(told: dict[str, object]) -> None:
    record = spaced(*WORDS, FINISH, usage(**told))
    assert (record.outcome, record.prompt_tokens, record.completion_tokens) == (Outcome.OK, 9, -1)
    assert (record.counted, record.hidden_tokens) == (10, 0)


# -- counts


def test_counts_written_as_floats_are_read() -> None:
    told = {
        "prompt_tokens": 9.0,
        "completion_tokens": 1e1,
        "prompt_tokens_details": {"cached_tokens": 4.0},
    }
    record = spaced(*WORDS, FINISH, usage(**told))
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (9, 10, 4)
    assert all(isinstance(count, int) for count in (record.prompt_tokens, record.completion_tokens))


def so_far(count: int, **fields: object) -> bytes:
    return event(
        choices=[{"index": 0, "delta": {"content": "x"}, **fields}],
        usage={"completion_tokens": count},
    )


def test_usage_lagging_by_one_event_is_moved_back() -> None:
    record = spaced(so_far(0), so_far(1), so_far(2), so_far(3), FINISH, usage(completion_tokens=4))
    assert (record.token_counts, record.counted) == ([1, 1, 1, 1], 4)
    assert record.tpot_ns == 1_000_000


def test_usage_at_both_ends_is_no_count_per_event() -> None:
    role = event(
        choices=[{"index": 0, "delta": {"role": "assistant"}}], usage={"completion_tokens": 0}
    )
    record = spaced(role, *WORDS[:3], so_far(30, finish_reason="stop"))
    assert (record.token_counts, record.counted_by, record.completion_tokens) == (
        None,
        BY_EVENTS,
        30,
    )


# -- choices


@pytest.mark.parametrize(
    "choices",
    [
        [{"index": 1, "delta": {"content": "b"}}],
        [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "text": "b"}],
    ],
)
def test_second_choice_is_a_protocol_error(choices: list[object]) -> None:
    record = spaced(WORDS[0], event(choices=choices), FINISH)
    assert record.outcome is Outcome.PROTOCOL_ERROR
    assert "choice 1" in (record.detail or "")
    assert record.events == 1


@pytest.mark.parametrize("index", [0, None, "0", -1, 0.0])
def test_only_choice_is_read_with_any_index_type(index: object) -> None:
    body = event(choices=[{"index": index, "delta": {"content": "a"}, "finish_reason": "stop"}])
    assert spaced(body).outcome is Outcome.OK


# -- content in parts


def parts(*each: dict[str, object]) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": list(each)}}])


def test_content_as_a_list_of_parts_bears_tokens() -> None:
    record = Record(due=1)
    record.keeps_text = record.keeps_answer = True
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm "}]}
    body = (
        parts(thought)
        + parts({"type": "text", "text": "a"}, {"type": "text", "text": "b"})
        + parts()
        + FINISH
    )
    response = Response()
    response.begin(record)
    response.feed(streamed(body), 1)
    assert (record.outcome, record.reasoning_events, record.content_events) == (Outcome.OK, 1, 1)
    assert (record.text, record.generated_text) == ("hm ab", "ab")


@pytest.mark.parametrize(
    "part", [{"type": "reference", "reference_ids": [1]}, {"type": "thinking", "thinking": []}]
)
def test_content_part_without_text_bears_no_token(part: dict[str, object]) -> None:
    record = spaced(parts(part), WORDS[0], FINISH)
    assert (record.outcome, record.events) == (Outcome.OK, 1)


def test_content_parts_of_other_types_are_a_protocol_error() -> None:
    assert (
        spaced(WORDS[0], event(choices=[{"delta": {"content": ["a"]}}])).outcome
        is Outcome.PROTOCOL_ERROR
    )


# -- why an answer ended


@pytest.mark.parametrize(
    ("key", "value"), [("matched_stop", 151645), ("matched_stop", "\n\n"), ("stop_reason", 2)]
)
def test_matched_stop_is_kept(key: str, value: object) -> None:
    body = event(
        choices=[{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", key: value}]
    )
    assert spaced(body).matched_stop == value


@pytest.mark.parametrize("value", [None, "", [], True, 1.5])
def test_matched_stop_is_none_if_it_is_missing(value: object) -> None:
    body = event(
        choices=[
            {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", "matched_stop": value}
        ]
    )
    record = spaced(body)
    assert (record.outcome, record.matched_stop) == (Outcome.OK, None)


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity"])
def test_nan_events_are_read_and_counted(word: bytes) -> None:
    odd = (
        b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":%s}]}}]}\n\n'
        % word
    )
    record = spaced(WORDS[0], odd, odd, FINISH)
    assert (record.outcome, record.events, record.nan_events) == (Outcome.OK, 3, 2)


def test_count_of_another_type_is_a_protocol_error() -> None:
    assert (
        spaced(WORDS[0], b'data: {"usage":{"completion_tokens":NaN}}\n\n').outcome
        is Outcome.PROTOCOL_ERROR
    )


# -- heads and labels


@pytest.mark.parametrize(
    "label", [b"application/json", b"application/x-ndjson", b"application/json; charset=utf-8"]
)
@pytest.mark.parametrize(
    "before", [b"", b": ping\n\n", b"event: message\n", b"id: 1\n", b"\n", b"\r\n\r\n"]
)
def test_stream_labelled_json_is_read_as_a_stream(label: bytes, before: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % label
    wire = head + chunked(before + answer("a", "b"))
    for step in (1, 7, len(wire)):
        _, record = read(slices(wire, step))
        assert (record.outcome, record.events) == (Outcome.OK, 2), step


def test_json_after_blank_lines_is_one_piece() -> None:
    body = b'\n\r\n{"error": {"message": "no such model"}}'
    wire = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
        + body
    )
    for step in (1, len(wire)):
        assert read(slices(wire, step))[1].outcome is Outcome.STREAM_ERROR


def test_head_with_lf_line_ends_is_read() -> None:
    wire = streamed(answer("a", "b") + DONE, 20)
    head, _, body = wire.partition(b"\r\n\r\n")
    for blank in (b"\n\n", b"\n\r\n", b"\r\n\n"):
        bare = head.replace(b"\r\n", b"\n") + blank + body
        for step in (1, 2, 3, len(bare)):
            response, record = read(slices(bare, step))
            assert (record.outcome, record.events, response.keep_alive) == (Outcome.OK, 2, True), (
                blank,
                step,
            )


def test_folded_line_after_lf_continues_the_field() -> None:
    wire = b"HTTP/1.1 200 OK\nX-Folded: a\n b: c\nContent-Length: %d\n\n" % len(
        answer("a")
    ) + answer("a")
    assert read([wire])[1].outcome is Outcome.OK

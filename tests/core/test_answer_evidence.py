"""An event bears tokens by evidence, and an answer ends with its last event."""

import pytest

from loadgen.core.answer import BY_EVENTS, BY_IDS, BY_USAGE
from loadgen.core.event_flags import CHOICE, CONTENT, EMPTY, FINISH, ROLE, SILENT
from loadgen.core.http1 import Response
from loadgen.core.outcome import BROKEN_AFTER_END, Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import DONE, HEAD, chunked, delta, event, read, usage

MS = 1_000_000
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ROLES = delta(role="assistant", content="")
A, SAYS_NOTHING = delta(content="a"), delta(content="")


def record_of(*events: bytes) -> Record:
    """The record of a stream whose events arrive one a millisecond, the first at 1 ms."""
    parts = [chunked(one).removesuffix(b"0\r\n\r\n") for one in events]
    _, record = read([CHUNKED + parts[0], *parts[1:], b"0\r\n\r\n"])
    return record


def counts(completion: int, **more: object) -> bytes:
    return usage(prompt_tokens=9, completion_tokens=completion, **more)


def ms(*at: int) -> list[int]:
    return [number * MS for number in at]


def test_silent_events_at_the_end_are_the_tokens_that_usage_counts() -> None:
    record = record_of(
        ROLES, A, A, SAYS_NOTHING, SAYS_NOTHING, delta("length", content=""), counts(5), DONE
    )
    assert record.outcome is Outcome.OK
    assert record.stamps == ms(2, 3, 4, 5, 6)
    assert (record.last_token, record.silent_events, record.counted) == (6 * MS, 3, 5)
    assert (record.counted_by, record.token_counts, record.reads) == (BY_EVENTS, None, 5)
    assert record.tpot_ns == MS
    assert record.stream == [
        (CHOICE | ROLE | EMPTY, MS),
        (CHOICE | CONTENT, 2),
        (CHOICE | EMPTY | SILENT, 2),
        (CHOICE | EMPTY | FINISH | SILENT, 1),
        *(record.stream or [])[-2:],
    ]


def test_silent_events_between_texts_are_tokens_in_their_places() -> None:
    record = record_of(A, SAYS_NOTHING, A, SAYS_NOTHING, A, delta("stop"), counts(5), DONE)
    assert record.stamps == ms(1, 2, 3, 4, 5)
    assert record.stream is not None
    assert [says for says, _ in record.stream[:5]] == [
        CHOICE | CONTENT,
        CHOICE | EMPTY | SILENT,
        CHOICE | CONTENT,
        CHOICE | EMPTY | SILENT,
        CHOICE | CONTENT,
    ]


def test_silent_events_that_usage_does_not_count_are_no_tokens() -> None:
    record = record_of(ROLES, SAYS_NOTHING, A, SAYS_NOTHING, A, delta("stop"), counts(2), DONE)
    assert record.stamps == ms(3, 5)
    assert (record.first_token, record.silent_events) == (3 * MS, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": None},
        {"reasoning_content": ""},
        {"role": None, "content": "", "tool_calls": None},
        {"role": None, "content": None, "reasoning_content": None, "tool_calls": None},
    ],
    ids=["nothing", "null", "empty reasoning", "null role", "all null"],
)
def test_event_without_text_and_role_is_a_token_where_usage_needs_it(
    fields: dict[str, object],
) -> None:
    silent = delta(**fields)
    record = record_of(ROLES, A, silent, A, silent, delta("length", **fields), counts(5), DONE)
    assert (record.outcome, record.stamps) == (Outcome.OK, ms(2, 3, 4, 5, 6))
    assert (record.tpot_ns, record.silent_events) == (MS, 3)


def test_choice_without_a_delta_is_no_token() -> None:
    annotation = event(choices=[{"index": 0, "content_filter_results": {}, "finish_reason": None}])
    record = record_of(A, annotation, A, delta("stop"), counts(3), DONE)
    assert record.stamps == ms(1, 3, 4)


def test_silent_events_without_usage_are_no_tokens() -> None:
    record = record_of(SAYS_NOTHING, A, SAYS_NOTHING, delta("stop"), DONE)
    assert (record.stamps, record.outcome) == (ms(2), Outcome.OK)


def test_stream_with_too_many_events_to_list_stays_so_when_equal_ones_are_joined() -> None:
    listed = 1 << 16
    body = SAYS_NOTHING * listed + A + delta("stop") + counts(listed + 1) + DONE
    _, record = read([CHUNKED + chunked(body)])
    assert (record.events, record.stream) == (listed + 1, None)


HEADS = [SAYS_NOTHING, SAYS_NOTHING, A, A]


@pytest.mark.parametrize(
    ("end", "count", "stamps"),
    [
        (delta("stop"), 2, ms(3, 4)),
        (delta("stop"), 3, ms(3, 4, 5)),  # an end token that usage counts, as most servers do
        (delta("stop"), 4, ms(1, 2, 3, 4)),
        (delta("stop"), 5, ms(1, 2, 3, 4, 5)),  # one event per token
        (delta("stop"), 6, ms(3, 4)),
        (delta("stop"), 100, ms(3, 4)),  # hidden reasoning
        (delta("length", content="b"), 3, ms(3, 4, 5)),
        (delta("length", content="b"), 4, ms(3, 4, 5)),
        (delta("length", content="b"), 5, ms(1, 2, 3, 4, 5)),
    ],
)
def test_heads_without_text_are_tokens_only_where_the_server_sends_one_event_per_token(
    end: bytes, count: int, stamps: list[int]
) -> None:
    record = record_of(*HEADS, end, counts(count), DONE)
    assert (record.outcome, record.stamps) == (Outcome.OK, stamps)
    assert record.first_answer == 3 * MS


def test_an_opening_chunk_is_no_token_where_the_finish_event_can_be_the_missing_one() -> None:
    record = record_of(SAYS_NOTHING, A, A, delta("stop"), counts(3), DONE)
    assert record.stamps == ms(2, 3, 4)


def test_finish_event_is_the_last_token_where_one_is_left() -> None:
    record = record_of(A, A, delta("stop"), counts(3), DONE)
    assert (record.stamps, record.last_token) == (ms(1, 2, 3), 3 * MS)


def test_finish_event_is_no_token_where_many_are_left() -> None:
    record = record_of(A, A, delta("stop"), counts(30), DONE)
    assert record.stamps == ms(1, 2)


def test_finish_event_before_the_last_text_is_no_token() -> None:
    record = record_of(A, delta("stop"), A, counts(2), DONE)
    assert (record.stamps, record.token_counts) == (ms(1, 3), None)


def test_reasoning_that_was_never_streamed_promotes_no_event() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 7}}
    record = record_of(SAYS_NOTHING, A, SAYS_NOTHING, delta("stop"), counts(8, **details), DONE)
    assert (record.stamps, record.hidden_tokens) == (ms(2), 7)


def test_answer_without_any_text_is_ok_by_its_usage() -> None:
    record = record_of(ROLES, *[SAYS_NOTHING] * 3, delta("length"), counts(3), DONE)
    assert (record.outcome, record.stamps) == (Outcome.OK, ms(2, 3, 4))
    assert record.first_answer == 0


def test_answer_without_any_text_and_usage_is_empty() -> None:
    assert record_of(ROLES, SAYS_NOTHING, delta("stop"), DONE).outcome is Outcome.EMPTY


def test_token_ids_prove_a_token_without_text() -> None:
    silent = event(choices=[{"index": 0, "delta": {"content": ""}, "token_ids": [5]}])
    record = record_of(ROLES, silent, A, delta("stop"), DONE)
    assert (record.stamps, record.counted_by) == (ms(2, 3), BY_IDS)


def test_growing_usage_proves_a_token_without_text() -> None:
    def so_far(text: str, completion: int) -> bytes:
        choice = {"index": 0, "delta": {"content": text}}
        return event(choices=[choice], usage={"completion_tokens": completion})

    record = record_of(
        so_far("a", 1), so_far("", 2), so_far("", 2), so_far("b", 3), delta("stop"), DONE
    )
    assert (record.stamps, record.counted_by) == (ms(1, 2, 4), BY_USAGE)


def test_growing_count_of_generate_proves_tokens_without_text() -> None:
    def so_far(completion: int, finish: object = None) -> bytes:
        meta = {"completion_tokens": completion, "prompt_tokens": 9, "finish_reason": finish}
        return event(text="", meta_info=meta)

    record = record_of(so_far(1), so_far(2), so_far(3, {"type": "length"}), DONE)
    assert (record.outcome, record.stamps) == (Outcome.OK, ms(1, 2, 3))


def test_bounds_stay_with_the_events_that_are_tokens() -> None:
    record = record_of(SAYS_NOTHING, A, SAYS_NOTHING, A, delta("stop"), counts(2), DONE)
    assert record.read_times == record.stamps == ms(2, 4)


@pytest.mark.parametrize(
    ("last", "events"),
    [("abcde", 5), ("abcdef", 6)],
    ids=["the same text", "and a little more"],
)
def test_last_event_that_repeats_the_answer_adds_its_growth_alone(last: str, events: int) -> None:
    words = [delta(content=letter) for letter in "abcde"]
    record = record_of(*words, delta("stop", content=last), DONE)
    assert record.events == events


def test_one_word_again_and_again_is_no_repetition() -> None:
    assert record_of(*[A] * 9, delta("stop"), DONE).events == 9


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "reasoning"),
        ({"reasoning_details": [{"summary": "hm"}], "reasoning": "hm"}, "reasoning"),
        ({"thinking": "hm"}, "reasoning"),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "other"),
        ({"audio": {"transcript": "hm"}}, "content"),
        ({"tool_calls": [{"function": {"name": "f", "arguments": ""}}]}, "other"),
        ({"novelty": "hm"}, "other"),
    ],
)
def test_text_under_other_keys_is_a_token(fields: dict[str, object], kind: str) -> None:
    record = record_of(delta(**fields), delta("stop"), DONE)
    assert (record.outcome, record.events) == (Outcome.OK, 1)
    assert getattr(record, f"{kind}_events") == 1
    assert (record.unread or {}).keys() == ({"delta.novelty"} if "novelty" in fields else set())


def test_text_under_two_keys_counts_once() -> None:
    response, record = Response(), Record(due=1)
    record.keeps_text = True
    response.begin(record)
    body = delta(reasoning="hm", reasoning_content="hm") + delta("stop", content="a") + DONE
    response.feed(CHUNKED + chunked(body), MS)
    assert record.text == "hma"


FAILURES = ["abort", "error", "cancelled", "content_filter"]


@pytest.mark.parametrize("reason", FAILURES)
def test_finish_reason_of_a_failure_fails(reason: str) -> None:
    record = record_of(*([] if reason == "content_filter" else [A]), delta(reason), DONE)
    assert record.outcome is Outcome.STREAM_ERROR
    assert record.detail == f"the finish reason is {reason}"


def test_filtered_answer_with_text_is_ok() -> None:
    assert record_of(A, delta("content_filter"), DONE).outcome is Outcome.OK


@pytest.mark.parametrize("word", ["null", "None", ""])
def test_word_for_no_reason_is_none(word: str) -> None:
    record = record_of(delta(word, content="a"), delta(word, content="b"))
    assert (record.outcome, record.finish_reason) == (Outcome.TRUNCATED, None)


def test_done_without_a_finish_reason_completes() -> None:
    record = record_of(A, DONE)
    assert (record.outcome, record.finish_reason) == (Outcome.OK, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"choices": [{"index": 0, "delta": {}, "error": {"code": 502}}]},
        {"choices": [{"index": 0, "delta": {"error": {"code": 502}}}]},
        {"choices": [], "x_groq": {"error": {"code": 502}}},
    ],
    ids=["choice", "delta", "Groq"],
)
def test_error_at_any_level_fails(fields: dict[str, object]) -> None:
    record = record_of(A, event(**fields), DONE)
    assert (record.outcome, record.detail) == (Outcome.STREAM_ERROR, '{"code":502}')


def test_event_of_the_type_error_fails() -> None:
    record = record_of(A, event(type="error", message="out of memory"), DONE)
    assert record.outcome is Outcome.STREAM_ERROR
    assert record.detail == '{"type":"error","message":"out of memory"}'


@pytest.mark.parametrize(
    "lines", [b"error: out of memory\n\n", b"event: error\ndata: out of memory\n\n"]
)
def test_error_line_fails(lines: bytes) -> None:
    record = record_of(A, lines)
    assert (record.outcome, record.detail) == (Outcome.STREAM_ERROR, "out of memory")


@pytest.mark.parametrize(
    "lines",
    [
        b"event: error\n\n",
        b"event: error\ndata:\n\n",
        b"event: error\nevent: message\n",
        b"event: error\nevent\n",
    ],
    ids=["no data", "empty data", "another name", "no name"],
)
def test_name_of_an_error_ends_with_its_event_and_with_another_name(lines: bytes) -> None:
    record = record_of(A, lines, A, delta("stop"), DONE)
    assert (record.outcome, record.detail, record.events) == (Outcome.OK, None, 2)


@pytest.mark.parametrize("status", [201, 206])
def test_any_status_of_success_is_an_answer(status: int) -> None:
    wire = CHUNKED.replace(b"200 OK", b"%d Yes" % status) + chunked(A + delta("stop") + DONE)
    _, record = read([wire])
    assert (record.outcome, record.status) == (Outcome.OK, status)


ENDS = {"done": A + DONE, "finish and usage": A + delta("stop") + counts(1)}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("error", [None, "Connection reset by peer"])
def test_connection_that_breaks_after_the_end_fails_nothing(end: str, error: str | None) -> None:
    part = chunked(ENDS[end]).removesuffix(b"0\r\n\r\n")
    response, record = read([CHUNKED + part, b"5\r\nda"], closed=True, error=error)
    assert (record.outcome, record.events, response.keep_alive) == (Outcome.OK, 1, False)
    assert record.detail == BROKEN_AFTER_END


def test_framing_that_breaks_after_the_end_fails_nothing() -> None:
    part = chunked(ENDS["done"]).removesuffix(b"0\r\n\r\n")
    response, record = read([CHUNKED + part, b"no size\r\n"])
    assert (record.outcome, record.events, response.keep_alive) == (Outcome.OK, 1, False)
    assert record.detail == BROKEN_AFTER_END


@pytest.mark.parametrize("end", [*ENDS.values(), A + delta("stop")])
def test_client_that_gives_up_after_the_end_has_the_answer(end: bytes) -> None:
    response, record = read([CHUNKED + chunked(end).removesuffix(b"0\r\n\r\n")])
    response.abandon(Outcome.STALLED, "no token in time", 9 * MS)
    assert (record.outcome, record.closed) == (Outcome.OK, 9 * MS)


def test_reasoning_beside_the_completion_tokens_is_added_to_them() -> None:
    details = {"total_tokens": 311, "completion_tokens_details": {"reasoning_tokens": 300}}
    record = record_of(A, A, delta("stop"), counts(2, **details), DONE)
    assert (record.completion_tokens, record.hidden_tokens) == (302, 300)
    assert record.tpot_ns == MS


@pytest.mark.parametrize(
    "fields",
    [
        {"choices": [{"usage": {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}}]},
        {
            "choices": [],
            "x_groq": {
                "usage": {
                    "prompt_tokens": 9,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 4},
                }
            },
        },
        {
            "choices": [],
            "usage": {
                "input_tokens": 9,
                "output_tokens": 2,
                "input_tokens_details": {"cached_tokens": 4},
            },
        },
        {
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
        },
    ],
    ids=["Kimi", "Groq", "mlx", "DeepSeek"],
)
def test_usage_of_other_servers_is_read(fields: dict[str, object]) -> None:
    record = record_of(A, A, delta("stop"), event(**fields), DONE)
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (9, 2, 4)


def test_count_of_no_prompt_tokens_is_no_count() -> None:
    record = record_of(A, delta("stop"), usage(prompt_tokens=0, completion_tokens=1), DONE)
    assert record.prompt_tokens == -1


def test_event_that_no_rule_takes_is_named() -> None:
    record = record_of(A, event(detail="out of memory"), event(), event(choices=[]), DONE)
    assert record.outcome is Outcome.OK
    assert record.unread == {"event": (1, '{"detail":"out of memory"}')}


def test_empty_answer_quotes_an_event_that_no_rule_takes() -> None:
    told = event(choices=[{"index": 0, "message": {"content": "a"}}])
    record = record_of(ROLES, told, delta("stop"), DONE)
    assert record.outcome is Outcome.EMPTY
    assert '{"content":"a"}' in str(record.detail)


def test_lines_that_no_rule_takes_are_kept_and_quoted() -> None:
    record = record_of(b'{"response":"a"}\n', b'{"response":"b"}\n')
    assert record.outcome is Outcome.EMPTY
    assert record.unread == {"line": (2, '{"response":"a"}')}
    assert 'the server sent: {"response":"a"}' in str(record.detail)

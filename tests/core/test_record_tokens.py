"""The number of tokens an event carries, and where that number comes from."""

import pytest

from loadgen.core.accumulator import Latency, Tally
from loadgen.core.answer import BY_EVENTS, BY_IDS, BY_USAGE
from loadgen.core.histogram import Histogram
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.snapshot import LATENCIES, WAITS
from tests.helpers.response_bytes import DONE, chunked, delta, event, read, slices, usage

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MS = 1_000_000


def record_of(*events: bytes) -> Record:
    """The record of a stream whose events arrive one a millisecond, the first at 1 ms."""
    parts = [b"%x\r\n%s\r\n" % (len(one), one) for one in events]
    _, record = read([HEAD + parts[0], *parts[1:], b"0\r\n\r\n"])
    assert record.outcome is Outcome.OK
    return record


def told(text: str, completion: int | None, finish: str | None = None, **choice: object) -> bytes:
    """An event with text, and with usage so far where it is given."""
    counts = (
        {}
        if completion is None
        else {"usage": {"prompt_tokens": 9, "completion_tokens": completion}}
    )
    return event(
        choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish, **choice}],
        **counts,
    )


def bears(record: Record) -> list[int]:
    return record.token_counts or [1] * record.events


def test_event_counts_as_one_token_by_default() -> None:
    record = record_of(told("a", None), told("bcd", None, "stop"))
    assert (bears(record), record.counted, record.counted_by) == ([1, 1], 2, BY_EVENTS)


def test_usage_per_event_counts_its_tokens() -> None:
    record = record_of(told("", 0), told("a b", 2), told("c", 3), told("d e f", 6, "stop"))
    assert (bears(record), record.counted, record.counted_by) == ([2, 1, 3], 6, BY_USAGE)


def test_unseen_tokens_belong_to_the_next_event() -> None:
    record = record_of(told("a", 1), told("b", 5, "stop"))
    assert bears(record) == [1, 4]


def test_final_usage_is_no_count_of_the_last_event() -> None:
    record = record_of(told("a", None), told("b", None), told("c", 9, "stop"))
    assert (bears(record), record.completion_tokens, record.counted_by) == ([1, 1, 1], 9, BY_EVENTS)


def test_event_without_a_rise_in_usage_bears_none() -> None:
    record = record_of(told("a", 1), told("half a character", 1), told("b", 2, "stop"))
    assert (bears(record), record.counted) == ([1, 0, 1], 2)


@pytest.mark.parametrize(
    "so_far",
    [(0, 0, 0, 0), (4, 4, 4, 4), (4, 3, 2, 1)],
    ids=["none until the end", "all from the start", "ever fewer"],
)
def test_implausible_usage_per_event_is_dropped(so_far: tuple[int, ...]) -> None:
    events = [told("a", count) for count in so_far]
    record = record_of(*events, delta("stop"), usage(completion_tokens=4))
    assert (bears(record), record.counted, record.counted_by) == ([1, 1, 1, 1], 4, BY_EVENTS)
    assert record.completion_tokens == 4


def test_zero_count_is_dropped_if_tokens_came() -> None:
    record = record_of(told("a", None), told("b", None, "stop"), usage(completion_tokens=0))
    assert (record.completion_tokens, record.counted) == (-1, 2)


def test_single_event_bears_the_tokens_of_its_usage() -> None:
    record = record_of(told("a b c", 3, "stop"))
    assert (bears(record), record.first_tokens) == ([3], 3)


@pytest.mark.parametrize(
    "choice",
    [
        {"token_ids": [5, 6, 7]},
        {"logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": []}] * 3}},
        {
            "logprobs": {
                "tokens": ["a", "]", '"'],
                "token_logprobs": [-1.0, -2.0, -3.0],
                "top_logprobs": None,
            }
        },
        {"token_ids": [5, 6, 7], "logprobs": {"content": [{"token": "a"}]}},
    ],
    ids=["token ids", "logprobs of chat", "logprobs of completions", "ids before logprobs"],
)
def test_token_ids_and_logprobs_count_tokens(choice: dict[str, object]) -> None:
    record = record_of(told("abc", None, **choice), told("d", None, "stop"))
    assert (bears(record), record.counted, record.counted_by) == ([3, 1], 4, BY_IDS)


@pytest.mark.parametrize(
    "choice", [{"token_ids": None}, {"logprobs": None}, {"logprobs": []}, {"token_ids": "abc"}]
)
def test_unusable_token_ids_are_ignored(choice: dict[str, object]) -> None:
    record = record_of(told("abc", None, "stop", **choice))
    assert (bears(record), record.counted_by) == ([1], BY_EVENTS)


def test_usage_per_event_wins_over_token_ids() -> None:
    record = record_of(told("abc", 4, token_ids=[5, 6, 7]), told("d", 5, "stop"))
    assert (bears(record), record.counted_by) == ([4, 1], BY_USAGE)


def test_only_reads_with_tokens_are_counted() -> None:
    _, record = read(
        [HEAD, chunked(told("a", None) + told("b", None) + told("c", None, "stop") + DONE)]
    )
    assert (record.events, record.reads) == (3, 1)
    assert (
        record_of(
            told("a", None),
            delta(role="assistant"),
            told("b", None, "stop"),
            usage(completion_tokens=2),
        ).reads
        == 2
    )


# -- what follows for the gaps between tokens


def folded(record: Record) -> tuple[list[int], list[int], list[int], int]:
    """Gaps between events and between tokens in us, tokens per ms, and how many gaps were
    imputed.
    """
    latencies = {name: Latency() for name in LATENCIES}
    tally = Tally(0, MS, latencies, {name: Histogram() for name in WAITS})
    tally.add(record)
    icl, itl = (
        [
            round((low + high) / 2 / 1000)
            for low, high, n in latencies[name].points
            for _ in range(n)
        ]
        for name in ("icl", "itl")
    )
    return icl, itl, list(tally.bins), tally.imputed_gaps


def test_gap_before_k_tokens_is_k_token_gaps() -> None:
    record = record_of(told("a b", 2), told("c", 3), told("d e f g", 7, "stop"))
    icl, itl, bins, imputed = folded(record)
    assert icl == [1000, 1000]
    assert itl == [250] * 4 + [1000]
    assert bins == [0, 2, 1, 4]
    assert imputed == 4


def test_gap_before_an_empty_event_joins_the_next() -> None:
    record = record_of(told("a", 1), told("half", 1), told("b", 2, "stop"))
    assert folded(record)[:2] == ([1000, 1000], [2000])


def test_single_token_events_make_both_gaps_equal() -> None:
    record = record_of(told("a", None), told("b", None), told("c", None, "stop"))
    icl, itl, _, imputed = folded(record)
    assert (icl, itl, imputed) == ([1000, 1000], [1000, 1000], 0)


def test_restored_record_is_the_same() -> None:
    record, again = record_of(told("a b", 2), told("c", 3, "stop")), Record()
    again.restore(record.stamps, record.token_counts, record.stream)
    again.outcome = record.outcome
    assert (again.stamps, again.token_counts, again.counted) == (
        record.stamps,
        record.token_counts,
        record.counted,
    )
    assert again.stream == record.stream
    assert folded(again) == folded(record)


# -- the text, for servers that do not count


def text_of(*events: bytes, step: int = 10_000_000) -> str:
    record = Record(due=1)
    record.keeps_text = True
    response = Response()
    response.begin(record)
    for part in slices(HEAD + chunked(b"".join(events)), step):
        response.feed(part, MS)
    assert record.outcome is Outcome.OK
    return record.text


def test_text_holds_all_that_bears_tokens() -> None:
    call = {"index": 0, "function": {"name": "f", "arguments": '{"a": 1}'}}
    events = [
        delta(role="assistant", content=""),
        delta(reasoning="Hm. "),
        delta(content='"Grüße"\n'),
        event(choices=[{"index": 0, "text": "\\ok "}]),
        delta(reasoning="both ", content="at once "),
        delta("stop", tool_calls=[call]),
        DONE,
    ]
    for step in (1, 7, 10_000):
        assert text_of(*events, step=step) == 'Hm. "Grüße"\n\\ok both at once f{"a": 1}'


def test_character_split_over_events_is_whole_in_text() -> None:
    halves = [
        b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % half
        for half in (b"\\ud83d", b"\\ude00")
    ]
    assert text_of(*halves, delta("stop")) == "\U0001f600"


def test_half_a_surrogate_pair_in_text_is_accepted() -> None:
    half = b'data: {"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}\n\n'
    assert text_of(half).startswith("a")
    broken = b'data: {"choices":[{"delta":{"content":"a\xff"},"finish_reason":"stop"}]}\n\n'
    assert text_of(broken) == "a\ufffd"


def test_text_is_kept_only_if_asked() -> None:
    assert record_of(told("a", None, "stop")).text == ""

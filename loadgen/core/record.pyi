"""Record: everything known about one scheduled request."""

from collections.abc import Callable, Iterable, Sequence
from typing import final

from loadgen.core.answer import Finish
from loadgen.core.outcome import Outcome
from loadgen.core.server_times import Times

UNPLANNED: int
UNBOUNDED: int

@final
class Record:
    """Everything known about one scheduled request.

    Stamps are CLOCK_MONOTONIC ns, 0 if it did not happen; counts are -1 if they are not known.

    Args:
        index: Number of the request in the schedule.
        input_tokens: Planned; UNPLANNED if the prompt repeats answers, or no tokenizer has counted
            it.
        output_tokens: Planned.
        due: When the schedule wanted it sent.

    Attributes:
        index, input_tokens, output_tokens, due: As the arguments.
        server_tokens: Input tokens that the server is expected to count.
        target: Which of the run's targets it was sent to, from 0.
        class_number: Which of the run's classes it is in, from 0.
        turn: Its place in its session, from 0; -1: the run has no sessions.
        outcome: How it ended; None: it has not.
        detail: What an error says of it, or None.
        finish_reason: Why the answer ended, by the server; None: it has not said it.
        source: Where its prompt comes from; None: only a file of records says it.
        matched_stop: The stop word or token id that ended the answer, or None.
        status: The HTTP status; 0: none came.
        ready: When a slot under the concurrency cap was free for it.
        sent: When it left, by the kernel's stamp where there is one; else when its bytes were
            handed over.
        written: When it had left at the latest; 0: not known.
        connect_ns: How long it waited for a connection; 0 if one was ready.
        first_byte, first_token, last_token: When they came: by the kernel's stamp where there is
            one, else when read.
        first_answer: When the first token of content, not reasoning, came.
        first_answer_earliest: When that can have come at the earliest.
        closed: When the response ended.
        prompt_tokens, completion_tokens, cached_tokens: The server's counts by its usage.
        reasoning_tokens: Those of `completion_tokens` that are reasoning, streamed or not.
        total_tokens: The server's count of prompt and answer.
        unread: What no rule took, by its name: how often it came, and an example; or None.
        content_events, reasoning_events, other_events: Token-bearing events by kind.
        nan_events: Events that hold NaN or infinity.
        reads: Reads of the socket that brought events with tokens.
        counted: Tokens of all events: by the events themselves where they say it, else one each.
        counted_by: What said so: BY_EVENTS, BY_IDS or BY_USAGE.
        tokenized: Tokens of `text` by a tokenizer.
        results: Embeddings or scores, 0 before they came; -1: the answer has tokens.
        texts: The texts that were sent, each of which has a result; 0: unknown.
        is_whole: Whether the answer has tokens and comes in one piece: they have no times.
        user_stamped: Events with tokens and without a stamp of the kernel's; UNBOUNDED if that is
            not known.
        reordered: Events with tokens that were readable only after segments that the network had
            lost or delayed.
        end_after_tokens: After how many tokens the client itself ends it; 0: not for that.
        end_after_ns: How long after it was sent the client itself ends it, ns; -1: not for that.
        ends_as: Its outcome and its detail then, without the number of tokens; None: it does not.
        attempts: How often it was sent: 1, or more where the server refused it.
        retried_ns: From `ready` to when the last attempt was to be sent, ns; 0: there was one.
        first_sent, first_closed, first_status: Of the first of several attempts; 0: there was one.
        retry_after: The value of Retry-After in an answer with an error, or None.
        session_token: Header lines with the token of its session, to be sent, or None.
        response_head: The status line and fields of the answer, if `keeps_head`; else None.
        redaction: Takes credentials out of the text of the answer; None: there are none.
        keeps_text, keeps_answer, keeps_head: What to keep of the answer; set before the request.
        reused: Whether its connection had carried a request before.
        window_filled: Whether so much was unread at once that the server may have had to wait.
        done_seen: Whether [DONE] came.
        server_times: What the server has said of its time: `by`, and quantities in ns
            (`core.server_times`); None: nothing.
        connect_parts: How long `dns`, `tcp` and `tls` took of the connection that was opened for
            it, ns; None: none was.
        tcp_info: The least and the smoothed round trip time of its connection, us; how many
            segments came before an earlier one, and were sent again, during the request (-1: not
            known); None: the kernel says nothing.
        finish: What of the end of the answer has come.
    """

    index: int
    input_tokens: int
    output_tokens: int
    server_tokens: int
    outcome: Outcome | None
    detail: str | None
    source: str | None
    finish_reason: str | None
    matched_stop: int | str | None
    status: int
    target: int
    class_number: int
    turn: int
    due: int
    ready: int
    sent: int
    connect_ns: int
    first_byte: int
    first_token: int
    first_answer: int
    last_token: int
    closed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    total_tokens: int
    unread: dict[str, tuple[int, str]] | None
    content_events: int
    reasoning_events: int
    other_events: int
    nan_events: int
    reads: int
    counted: int
    counted_by: int
    tokenized: int
    results: int
    texts: int
    is_whole: bool
    user_stamped: int
    reordered: int
    written: int
    first_answer_earliest: int
    end_after_tokens: int
    end_after_ns: int
    ends_as: tuple[Outcome, str] | None
    attempts: int
    retried_ns: int
    first_sent: int
    first_closed: int
    first_status: int
    retry_after: str | None
    session_token: bytes | None
    response_head: bytes | None
    redaction: Callable[[str], str] | None
    keeps_text: bool
    keeps_answer: bool
    keeps_head: bool
    reused: bool
    window_filled: bool
    done_seen: bool
    finish: Finish
    server_times: Times | None
    connect_parts: dict[str, int] | None
    tcp_info: tuple[int, int, int, int] | None
    def add_times(self, times: Times) -> None: ...
    def end(self, outcome: Outcome, detail: str | None, at_ns: int) -> None: ...
    def earliest_at(self, event: int) -> int: ...
    events: int
    ordered: bool
    stamps: list[int]
    earliest: list[int] | None
    read_times: list[int]
    marks: bytes
    token_counts: list[int] | None
    latest_event: int
    silent_events: int
    text: str
    answer: bytes
    answer_text: str
    generated_text: str
    stream: list[tuple[int, int]] | None
    first_tokens: int
    expected_tokens: int
    answer_tokens: int
    counts_tokens: bool
    hidden_tokens: int
    span_bounds_ns: tuple[int, int]
    tpot_ns: int | None
    tpot_bounds_ns: tuple[int, int] | None
    earliest_marks: bytes
    tpot_n1_ns: int | None
    lag_ns: int | None
    def __init__(
        self, index: int = 0, input_tokens: int = 0, output_tokens: int = 0, due: int = 0
    ) -> None: ...
    def restore(
        self,
        stamps: Sequence[int],
        tokens: Sequence[int] | None = None,
        stream: Sequence[tuple[int, int]] | None = (),
        answer: str = "",
        earliest: Iterable[tuple[int, int]] | None = None,
        read_late: Sequence[int] | None = None,
    ) -> None: ...

def live() -> dict[str, int] | None: ...

"""Record: everything known about one scheduled request."""

from collections.abc import Callable, Iterable, Sequence
from typing import final

from loadgen.core.outcome import Outcome

UNPLANNED: int
UNBOUNDED: int
BY_EVENTS: int
BY_IDS: int
BY_USAGE: int

@final
class Record:
    """Everything known about one scheduled request; record.pxd says what each attribute is.

    Stamps are CLOCK_MONOTONIC ns, 0 if it did not happen; counts are -1 if they are not known.
    """

    index: int
    input_tokens: int
    output_tokens: int
    server_tokens: int
    outcome: Outcome | None
    detail: str | None
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
    content_events: int
    reasoning_events: int
    other_events: int
    nan_events: int
    reads: int
    counted: int
    counted_by: int
    tokenized: int
    results: int
    is_whole: bool
    user_stamped: int
    written: int
    first_answer_earliest: int
    disconnect_tokens: int
    disconnect_ns: int
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
    by_reader: bool
    def end(self, outcome: Outcome, detail: str | None, at_ns: int) -> None: ...
    def earliest_at(self, event: int) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def stamps(self) -> list[int]: ...
    @property
    def earliest(self) -> list[int] | None: ...
    @property
    def read_times(self) -> list[int]: ...
    @property
    def marks(self) -> bytes: ...
    @property
    def token_counts(self) -> list[int] | None: ...
    @property
    def text(self) -> str: ...
    @property
    def answer(self) -> bytes: ...
    @property
    def answer_text(self) -> str: ...
    @property
    def generated_text(self) -> str: ...
    @property
    def stream(self) -> list[tuple[int, int]] | None: ...
    @property
    def first_tokens(self) -> int: ...
    @property
    def expected_tokens(self) -> int: ...
    @property
    def answer_tokens(self) -> int: ...
    @property
    def counts_tokens(self) -> bool: ...
    @property
    def hidden_tokens(self) -> int: ...
    @property
    def span_bounds_ns(self) -> tuple[int, int]: ...
    @property
    def tpot_ns(self) -> int | None: ...
    @property
    def tpot_bounds_ns(self) -> tuple[int, int] | None: ...
    @property
    def earliest_marks(self) -> bytes: ...
    @property
    def tpot_n1_ns(self) -> int | None: ...
    @property
    def lag_ns(self) -> int | None: ...
    def __init__(self, index: int = 0, input_tokens: int = 0, output_tokens: int = 0, due: int = 0) -> None: ...
    def restore(
        self,
        stamps: Sequence[int],
        tokens: Sequence[int] | None = None,
        stream: Sequence[tuple[int, int]] | None = None,
        answer: str = "",
        earliest: Iterable[tuple[int, int]] = (),
        read_late: Sequence[int] | None = None,
    ) -> None: ...

def live() -> dict[str, int] | None: ...

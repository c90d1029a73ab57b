from collections.abc import Callable
from typing import Any, Protocol

from loadgen.histogram import Histogram
from loadgen.outcomes import Outcome

MAX_HEAD: int
MAX_LINE: int
MAX_SAMPLE: int
NEVER: int

class Record:
    index: int
    input_tokens: int
    output_tokens: int
    outcome: Outcome | None
    detail: str | None
    finish_reason: str | None
    status: int
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
    content_events: int
    reasoning_events: int
    other_events: int
    reused: bool
    done_seen: bool
    by_reader: bool
    @property
    def events(self) -> int: ...
    @property
    def stamps(self) -> list[int]: ...
    def __init__(self, index: int = 0, input_tokens: int = 0, output_tokens: int = 0, due: int = 0) -> None: ...
    def fold(
        self, token_gaps: Histogram, event_gaps: Histogram, bins: Any, start_ns: int, bin_ns: int, tokens: int
    ) -> int: ...

class Response:
    record: Record
    @property
    def complete(self) -> bool: ...
    @property
    def keep_alive(self) -> bool: ...
    @property
    def keep_alive_ns(self) -> int: ...
    @property
    def wants_reader(self) -> bool: ...
    def begin(self, record: Record) -> None: ...
    def feed(self, data: bytes, at_ns: int) -> None: ...
    def feed_body(self, data: bytes, at_ns: int) -> None: ...
    def raw(self) -> bytes: ...
    def eof(self, at_ns: int, error: str | None = None) -> None: ...
    def abandon(self, outcome: Outcome, detail: str, at_ns: int) -> None: ...

class Owner(Protocol):
    def ended(self, connection: Connection) -> None: ...
    def dropped(self, connection: Connection, error: Exception | None) -> None: ...
    def reader(self, connection: Connection) -> None: ...

class Bell:
    at_ns: int
    ring: Callable[[], object] | None
    def __init__(self) -> None: ...

class Connection(Response):
    transport: Any
    owner: Owner
    handle: Any
    idle_since: int
    lost: bool
    def __init__(self, owner: Owner, handle: Any, transport: Any, bell: Bell) -> None: ...
    def send(self, request: bytes, record: Record) -> None: ...
    def connection_made(self, transport: Any) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

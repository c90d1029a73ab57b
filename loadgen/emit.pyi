"""Types of the compiled write path."""

from asyncio import Transport
from collections.abc import Iterable

class Words:
    """The words that answers are made of."""

    count: int
    longest: int
    def __init__(self, words: Iterable[str]) -> None: ...
    def text(self, seed: int, tokens: int, skip: int = 0) -> str: ...

class Stream:
    """One response body in HTTP chunks, each a server-sent event that holds one token."""

    tokens: int
    cut: bool
    def __init__(
        self,
        transport: Transport,
        words: Words,
        seed: int,
        head: bytes,
        tail: bytes,
        *,
        reasoning_head: bytes = b"",
        reasoning_tokens: int = 0,
        limit: int = 4194304,
    ) -> None: ...
    def write(self, before: bytes = b"", tokens: int = 0, after: bytes = b"") -> None: ...
    def close(self) -> None: ...

def emit(streams: list[Stream | None]) -> None: ...
def count_tokens(text: str) -> int: ...
def live() -> dict[str, int] | None: ...

"""Streams of tokens: the simulator's answers as server-sent events."""

from asyncio import Transport
from collections.abc import Iterable

from loadgen.engines.sim.outlet import Outlet

class Words:
    """The words that answers are made of."""

    count: int
    longest: int
    def __init__(self, words: Iterable[str]) -> None: ...
    def text(self, seed: int, tokens: int, skip: int = 0) -> str: ...

class Stream(Outlet):
    """One response body in HTTP chunks, each a server-sent event that holds one token."""

    tokens: int
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
    def write(
        self, before: bytes = b"", tokens: int = 0, after: bytes = b"", tail: bytes | None = None
    ) -> None: ...

class Grouped(Stream):
    """A stream whose events hold several tokens each, or say how many there have been."""

    def __init__(
        self,
        transport: Transport,
        words: Words,
        seed: int,
        head: bytes,
        tail: bytes,
        *,
        group: int = 1,
        prompt_tokens: int = -1,
        between: bytes = b"",
        end: bytes = b"",
        reasoning_head: bytes = b"",
        reasoning_tokens: int = 0,
        limit: int = 4194304,
    ) -> None: ...

def emit(streams: list[Stream | None]) -> None: ...
def count_tokens(text: str) -> int: ...
def live() -> dict[str, int] | None: ...

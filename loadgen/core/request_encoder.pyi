"""RequestEncoder: the bytes of the requests to one target."""

from collections.abc import Sequence
from typing import Protocol, final

from loadgen.core.record import Record

class _RequestClass(Protocol):
    def head(self, run: str = "") -> bytes: ...
    def session_line(self, run: str = "") -> bytes | None: ...
    @property
    def headers(self) -> dict[str, str]: ...

class _Target(Protocol):
    @property
    def each_class(self) -> Sequence[_RequestClass]: ...
    @property
    def generates(self) -> bool: ...
    @property
    def streams(self) -> bool: ...

@final
class RequestEncoder:
    """Puts the head of its class before the body of each request; request_encoder.pyx says more."""

    def __init__(self, target: _Target) -> None: ...
    def encode(self, record: Record, body: bytes) -> bytes: ...

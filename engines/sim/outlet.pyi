"""The way to one socket for one response."""

from asyncio import Transport

class Outlet:
    """The way to one socket for one response."""

    cut: bool
    held_back: int
    def __init__(self, transport: Transport, *, limit: int = 4194304) -> None: ...
    def send(self, data: bytes) -> None: ...
    def close(self) -> None: ...

def live() -> dict[str, int] | None: ...

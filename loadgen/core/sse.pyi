"""SseReader: server-sent events in, tokens and their stamps into a Record; it is used from C."""

MAX_LINE: int
MAX_SAMPLE: int

class SseReader: ...

def live() -> dict[str, int] | None: ...

"""Answer: the events of one answer, what they say, and which of them bear tokens."""

from enum import IntEnum

class Finish(IntEnum):
    """What of the end of an answer has come."""

    UNFINISHED = 0
    FINISHED = 1
    COMPLETE = 2

BY_EVENTS: int
BY_IDS: int
BY_USAGE: int

class Answer:
    """What has come of one answer: the part of a `Record` that its events fill."""

def unread_name(name: str, counts: dict[str, tuple[int, str]]) -> str: ...
def live() -> dict[str, int] | None: ...

"""Habits of servers in which their streams differ."""

from loadgen.testing.stream import REASONING, StreamFormat


def usage_with(found: StreamFormat) -> str | None:
    """Return what has the usage: `an event of its own`, `the finish` or `every event`; None:
    there is no usage.
    """
    bearers = [event for event in found.events if event.get("usage")]
    if not bearers:
        return None
    if len(bearers) > 1:
        return "every event"
    return "the finish" if bearers[0].get("choices") else "an event of its own"


def reasoning_key(found: StreamFormat) -> str | None:
    """Return the key of the reasoning text; None: there was none."""
    return next((key for key in REASONING for delta in found.deltas if delta.get(key)), None)

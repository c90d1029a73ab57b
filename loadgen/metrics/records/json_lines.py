"""Records as lines of JSON are read; `core.record_json` writes them."""

import functools
from collections.abc import Sequence
from typing import Any

from loadgen.core.event_flags import NAMES, TOKENS
from loadgen.core.outcome import Outcome
from loadgen.core.record import UNBOUNDED, Record
from loadgen.workload.prompt import UNPLANNED

EventRuns = Sequence[tuple[int, int]]  # as `Record.stream` has them

STAMPS = ("ready", "sent", "first_byte", "first_token", "first_answer", "last_token", "closed")
COUNTS = {  # keys of a line, and the attributes of a Record that are -1 where the line says null
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "predicted_server_input_tokens": "server_tokens",
}
COPIED = (
    *("content_events", "reasoning_events", "other_events", "reads", "counted_by"),
    *("reused", "detail", "source", "finish_reason"),
)
OPTIONAL: dict[str, tuple[str, Any]] = {  # keys, attributes, and their values without the key
    "total_tokens": ("total_tokens", -1),
    "results": ("results", -1),
    "done": ("done_seen", False),
    "whole": ("is_whole", False),
    "matched_stop": ("matched_stop", None),
    "target": ("target", 0),
    "nan_events": ("nan_events", 0),
    "window_filled": ("window_filled", False),
    "user_stamped": ("user_stamped", UNBOUNDED),
    "reordered": ("reordered", 0),
    "disconnect_tokens": ("end_after_tokens", 0),
    "disconnect_after": ("end_after_ns", -1),
}


def record_from_line(data: dict[str, Any], start_ns: int) -> Record:
    """Make a Record from a parsed line.

    Args:
        data: The JSON object; times are ns from `due`, and `due` is ns from the start of the clock.
        start_ns: When the clock started, CLOCK_MONOTONIC ns.

    Raises:
        KeyError, TypeError, ValueError: It is no line of a request.
    """
    due = start_ns + data["due"]
    planned = data["planned_input_tokens"]
    record = Record(
        data["index"], UNPLANNED if planned is None else planned, data["planned_output_tokens"], due
    )
    for stamp in STAMPS:
        setattr(record, stamp, 0 if data[stamp] is None else due + data[stamp])
    for key, attribute in COUNTS.items():
        setattr(record, attribute, -1 if data[key] is None else data[key])
    for name in COPIED:
        setattr(record, name, data[name])
    for key, (attribute, absent) in OPTIONAL.items():
        setattr(record, attribute, data.get(key, absent))
    reasoning_tokens = data.get("reasoning_tokens")  # older files have none
    record.reasoning_tokens = -1 if reasoning_tokens is None else reasoning_tokens
    unread = data.get("unread", {})
    record.unread = {name: (count, sample) for name, (count, sample) in unread.items()} or None
    record.outcome = Outcome(data["outcome"])
    record.status = data["status"] or 0
    record.turn = data.get("turn", 0) - 1  # absent in a run without sessions
    record.connect_ns = data["connect"]
    record.written = 0 if data.get("written") is None else due + data["written"]
    record.first_answer_earliest = record.first_answer
    if "first_answer_earliest" in data:
        record.first_answer_earliest = due + data["first_answer_earliest"]
    if "attempts" in data:
        record.attempts = data["attempts"]
        record.retried_ns = data["retried"]
        record.first_status = data["first_status"]
        record.first_sent = due + data["first_sent"]
        record.first_closed = due + data["first_closed"]
    if "server_times" in data:
        record.add_times(data["server_times"])
    if "connect_parts" in data:
        record.connect_parts = data["connect_parts"]
    if "tcp" in data:
        record.tcp_info = tuple(data["tcp"])
    stream = data.get("stream")  # older files do not have it
    runs = None if stream is None else event_runs(stream, due)
    stamps = [due + since for since in data["token_times"]]
    earliest = data.get("earliest")
    if earliest is not None:
        earliest = [(number, due + since) for number, since in earliest]
    answer = data.get("answer", "")
    read_late = data.get("read_late")
    record.restore(stamps, data["tokens_per_event"], runs, answer, earliest, read_late)
    if data.get("by_reader"):  # a compressed answer, in older files
        record.user_stamped = UNBOUNDED
    return record


def event_runs(stream: Sequence[tuple[str, int]], due: int) -> EventRuns:
    """Return the run-length list of all events of an answer, from the "stream" of a line.

    Args:
        stream: Pairs of joined event names, and a count (of token events) or a time in ns from
            `due` (of others).
        due: ns, CLOCK_MONOTONIC.

    Returns:
        Pairs of event flags, and a count or a time in ns, CLOCK_MONOTONIC.

    Raises:
        KeyError, TypeError, ValueError: It is no such list.
    """
    runs = ((_flags(names), value) for names, value in stream)
    return [(flags, value if flags & TOKENS else value + due) for flags, value in runs]


@functools.lru_cache(1024)
def _flags(names: str) -> int:
    return sum(NAMES[name] for name in names.split("+")) if names else 0

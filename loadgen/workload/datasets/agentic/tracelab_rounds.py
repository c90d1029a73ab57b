"""Rounds of coding agents in TraceLab's format: a JSON line for each call.

Fields: `session_id`, `timing_events` (`event_type`, `timestamp`), `input_tokens_total`,
`prefix_tokens` (how many of them the call before it had, too), `output_tokens`,
`reasoning_output_tokens`, `round_index`. Sources: https://github.com/uw-syfi/TraceLab, and AIPerf's
loader `_tracelab_convert.py`.
"""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.workload.datasets.agentic.recorded_session import (
    JsonRow,
    RecordedCall,
    RecordedSession,
    read_rows,
)

REMEDY = "give JSON lines of TraceLab"
INPUTS, OUTPUTS = ("user_message", "tool_result"), ("text", "reasoning", "tool_call")


def is_row(fields: dict[str, Any]) -> bool:
    """Return whether an object is a round of this format."""
    return {"session_id", "timing_events"} <= fields.keys()


def sessions(path: Path) -> Iterator[RecordedSession]:
    """Yield the sessions of a file, whose rounds may be mixed.

    Raises:
        BadInput: The file cannot be read, or a round is invalid.
    """
    rows = dict[str, list[tuple[float, float, int, JsonRow]]]()
    for row in read_rows(path, REMEDY):
        rows.setdefault(row.text("session_id"), []).append(
            (*_times(row), row.integer("round_index", default=0), row)
        )
    for name, rounds in rows.items():
        yield RecordedSession(name, _calls(sorted(rounds, key=lambda item: (item[0], item[2]))))


def _calls(rounds: list[tuple[float, float, int, JsonRow]]) -> list[RecordedCall]:
    calls, last_s = list[RecordedCall](), 0.0
    blocks, sizes = list[int](), list[int]()
    for number, (begin, end, _, row) in enumerate(rounds):
        tokens = max(row.integer("input_tokens_total"), 1)
        shared = min(row.integer("prefix_tokens", default=0), tokens, sum(sizes))
        left = shared
        shared_sizes = list[int]()
        for size in sizes:
            if left <= 0:
                break
            shared_sizes.append(min(size, left))
            left -= size
        blocks, sizes = blocks[: len(shared_sizes)], shared_sizes
        if tokens > shared:
            blocks, sizes = [*blocks, number], [*sizes, tokens - shared]
        output_tokens = row.integer("output_tokens", default=0) + row.integer(
            "reasoning_output_tokens", default=0
        )
        after, delay_s = ((number - 1,), max(0.0, begin - last_s)) if number else ((), 0.0)
        calls.append(
            RecordedCall(row.location, after, delay_s, tokens, max(output_tokens, 1), blocks, sizes)
        )
        last_s = end
    return calls


def _times(row: JsonRow) -> tuple[float, float]:
    """Return when a round was sent and when its answer ended, s: from the last input to the last
    output.
    """
    events = row.rows("timing_events")
    inputs, answered = (
        [_second(event) for event in events if event.fields.get("event_type") in kinds]
        for kinds in (INPUTS, OUTPUTS)
    )
    if not inputs and not answered:
        raise row.error("'timing_events' has no time of an input or output")
    begin = max(inputs) if inputs else min(answered)
    return begin, max([begin, *answered])


def _second(event: JsonRow) -> float:
    text = event.text("timestamp")
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise event.wrong("timestamp", text, "a date") from error
    return (at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).timestamp()

"""Conversations of agents in the format of MLPerf's endpoints benchmark: a JSON line for each
message.

Fields: `conversation_id`, `turn` from 1, `role` (user, assistant, tool), `content`, and as needed
`system`, `tools`, `tool_calls`, `tool_results`, `reasoning_content`, `delay_seconds`,
`max_new_tokens`. Each row of a user or tool is a request that repeats all rows before it. Source:
https://github.com/mlcommons/endpoints, `agentic_inference_dataset.py`.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.workload.datasets.agentic.recorded_session import (
    JsonRow,
    RecordedCall,
    RecordedSession,
    read_rows,
)

REMEDY = "give JSON lines of MLPerf's agentic inference data set"
NEXT = {
    "": ("user",),
    "user": ("assistant",),
    "assistant": ("tool", "user"),
    "tool": ("assistant", "user"),
}
LENGTHS = ("max_new_tokens", "max_completion_tokens", "max_tokens")
KEPT = ("content", "name", "tool_calls", "reasoning_content")


def is_row(fields: dict[str, Any]) -> bool:
    """Return whether an object is a message of this format, or what the file says of itself."""
    return {"conversation_id", "turn", "role"} <= fields.keys() or fields.get(
        "_type"
    ) == "dataset_metadata"


def sessions(path: Path) -> Iterator[RecordedSession]:
    """Yield the conversations of a file.

    Raises:
        BadInput: The file cannot be read, or a row is invalid.
    """
    rows = (row for row in read_rows(path, REMEDY) if row.fields.get("_type") != "dataset_metadata")
    seen = set[str]()
    for name, group in itertools.groupby(rows, key=lambda row: row.text("conversation_id")):
        conversation = list(group)
        if name in seen:
            remedy = "put the rows of each conversation together"
            raise conversation[0].error(
                f"the conversation {name!r} goes on after another one", remedy
            )
        seen.add(name)
        yield RecordedSession(name, _calls(conversation))


def _calls(rows: list[JsonRow]) -> list[RecordedCall]:
    system = next((row.text("system") for row in rows if row.fields.get("system")), "")
    messages: tuple[dict[str, Any], ...] = (
        ({"role": "system", "content": system},) if system else ()
    )
    tools = rows[0].of_kind(list, "tools", rows[0].fields.get("tools") or [])
    usual, calls, before = _length(rows[0]), list[RecordedCall](), rows[0]
    for turn, row in enumerate(rows, 1):
        _check(row, turn, before if turn > 1 else None)
        messages += _messages(row)
        before = row
        if row.text("role") != "assistant":
            fields = {"tools": row_tools} if (row_tools := row.fields.get("tools") or tools) else {}
            after = (len(calls) - 1,) if calls else ()
            delay_s, output_tokens = row.seconds("delay_seconds") or 0.0, _length(row) or usual
            calls.append(
                RecordedCall(
                    row.location,
                    after,
                    delay_s,
                    output_tokens=output_tokens,
                    messages=messages,
                    fields=fields,
                )
            )
    return calls


def _check(row: JsonRow, turn: int, before: JsonRow | None) -> None:
    if (number := row.integer("turn")) != turn:
        raise row.error(
            f"'turn' is {number}, and {turn} comes next", "number the rows of a conversation from 1"
        )
    state, role = before.text("role") if before else "", row.text("role")
    if role not in NEXT[state]:
        raise row.error(f"the role {role!r} cannot come {f'after {state!r}' if state else 'first'}")
    called = before is not None and bool(before.fields.get("tool_calls"))
    if role == "tool" and not called:
        raise row.error(
            "a result of a tool that was not called: the row before it has no 'tool_calls'"
        )
    if role == "user" and called:
        raise row.error("the row before it has 'tool_calls', whose results are missing")


def _messages(row: JsonRow) -> tuple[dict[str, Any], ...]:
    role, fields = row.text("role"), row.fields
    if role == "tool":
        results = row.rows("tool_results")
        if not results:
            raise row.error("'tool_results' is empty")
        for result in results:
            if result.fields.get("content") is None:
                raise result.error("'content' is missing")
        return tuple(
            {
                "role": "tool",
                "tool_call_id": result.text("tool_call_id"),
                "content": result.fields["content"],
            }
            for result in results
        )
    if role == "user":
        if not fields.get("content"):
            raise row.error("'content' is missing")
    elif not fields.get("content") and not fields.get("tool_calls"):
        raise row.error("it has neither 'content' nor 'tool_calls'")
    message = {"role": role} | {name: fields[name] for name in KEPT if fields.get(name) is not None}
    if "tool_calls" in message:
        row.rows("tool_calls")
        message.setdefault("content", None)
    return (message,)


def _length(row: JsonRow) -> int | None:
    return (
        row.integer(*LENGTHS) if any(row.fields.get(name) is not None for name in LENGTHS) else None
    )

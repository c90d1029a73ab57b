"""`WekaSession`: sessions of coding agents with subagents, in the format of Weka's KV cache tester,
which AgentX uses.

A session is an object with `block_size`, `hash_id_scope` and `requests`: calls (`type` "n" or "s")
with `t`, `in`, `out`, `hash_ids`, `api_time` and `think_time`, times in seconds, and subagents
(`type` "subagent") with `requests`. Sources: https://github.com/callanjfox/kv-cache-tester, and
AIPerf's loader `weka_trace_models.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.workload.datasets.agentic.recorded_session import (
    JsonRow,
    RecordedCall,
    RecordedSession,
    direct_predecessors,
    read_rows,
)
from loadgen.workload.tokenizer.random_text import check_blocks

CALLS, SUBAGENT = ("n", "s"), "subagent"
REMEDY = "give a trace of Weka: a session in each line, or one in the file"


def is_row(fields: dict[str, Any]) -> bool:
    """Return whether an object is a session of this format."""
    return {"requests", "hash_id_scope"} <= fields.keys()


def sessions(path: Path) -> Iterator[RecordedSession]:
    """Yield the sessions of a file.

    Raises:
        BadInput: The file cannot be read, or a session is invalid.
    """
    for row in read_rows(path, REMEDY):
        scope = row.text("hash_id_scope")
        if scope not in ("local", "global"):
            raise row.wrong("hash_id_scope", scope, "local or global")
        if not (block := row.integer("block_size")):
            raise row.error("'block_size' is 0")
        yield RecordedSession(row.text("id"), WekaSession(block).calls(row), scope == "global")


@dataclass(slots=True, eq=False)
class _TimedCall:
    """A call while the order of its session is not known yet."""

    call: RecordedCall
    begin: float
    end: float
    think_s: float | None
    waited_for: "list[_TimedCall]" = field(default_factory=list)


class WekaSession:
    """The calls of one session, which are put in order.

    Calls of one agent wait for each other as their times show. The first calls of a subagent wait
    for the call before it in the list, and the first call of the parent that begins after a
    subagent's end waits for that subagent.

    Args:
        block_tokens: The tokens of a block.
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._timed_calls: list[_TimedCall] = []

    def calls(self, session: JsonRow) -> list[RecordedCall]:
        """Return the calls in the order of their times.

        Raises:
            BadInput: An entry is invalid, or there is none.
        """
        self._add(session.rows("requests"), None, 0.0)
        if not self._timed_calls:
            raise session.error("it has no requests")
        # The sort is stable: parents stay before subagents.
        ordered = sorted(self._timed_calls, key=lambda timed_call: timed_call.begin)
        numbers = {id(timed_call): number for number, timed_call in enumerate(ordered)}
        for number, timed_call in enumerate(ordered):
            before = timed_call.waited_for or ordered[: min(1, number)]  # there is one first call
            timed_call.call.after = tuple(sorted(numbers[id(earlier)] for earlier in before))
            if len(before) == 1 and timed_call.think_s is not None:
                timed_call.call.delay_s = timed_call.think_s
            elif before:
                timed_call.call.delay_s = max(
                    0.0, timed_call.begin - max(earlier.end for earlier in before)
                )
        return [timed_call.call for timed_call in ordered]

    def _add(
        self, entries: list[JsonRow], spawner: _TimedCall | None, offset_s: float
    ) -> list[_TimedCall]:
        """Add the calls of one agent and of its subagents; return those that none of them waits
        for.
        """
        calls: list[_TimedCall] = []
        agents: list[tuple[JsonRow, _TimedCall | None, float]] = []
        for entry in entries:
            kind = entry.text("type")
            if kind in CALLS:
                calls.append(self._timed_call(entry, spawner, offset_s))
            elif kind == SUBAGENT:
                agents.append(
                    (entry, calls[-1] if calls else spawner, offset_s + self._begin(entry))
                )
            else:
                raise entry.wrong("type", kind, f"n, s or {SUBAGENT}")
        calls.sort(key=lambda timed_call: timed_call.begin)
        predecessors = direct_predecessors(
            [(timed_call.begin, timed_call.end) for timed_call in calls]
        )
        for timed_call, before in zip(calls, predecessors, strict=True):
            timed_call.waited_for = [calls[number] for number in before] or (
                [spawner] if spawner else []
            )
        self._timed_calls += calls
        followed = {id(earlier) for timed_call in calls for earlier in timed_call.waited_for}
        last = [timed_call for timed_call in calls if id(timed_call) not in followed]
        for entry, by, at_s in agents:
            inner = entry.rows("requests")
            is_relative = any(offset_s + self._begin(inner_entry) < at_s for inner_entry in inner)
            ends = self._add(inner, by, at_s if is_relative else offset_s)
            began_later = (
                timed_call
                for timed_call in calls
                if all(
                    timed_call.begin >= earlier.end and timed_call.begin > earlier.begin
                    for earlier in ends
                )
            )
            if ends and (joins := next(began_later, None)):
                joins.waited_for += ends
            else:
                last += ends  # it ran in the background
        return last

    def _begin(self, entry: JsonRow) -> float:
        begin = entry.seconds("t")
        if begin is None:
            raise entry.wrong("t", begin, "a number of seconds")
        return begin

    def _timed_call(
        self, entry: JsonRow, spawner: _TimedCall | None, offset_s: float
    ) -> _TimedCall:
        blocks = entry.fields.get("hash_ids") or []
        if not isinstance(blocks, list) or not all(
            type(block) is int and block >= 0 for block in blocks
        ):
            raise entry.error("'hash_ids' is not a list of whole numbers of 64 bits")
        tokens, output_tokens = (
            entry.integer("in", "input_length"),
            entry.integer("out", "output_length"),
        )
        try:
            check_blocks(len(blocks), self._block_tokens, tokens)
        except ValueError as error:
            raise entry.error(str(error)) from error
        begin = offset_s + self._begin(entry)
        if spawner is not None:
            begin = max(begin, spawner.begin)  # clocks of agents may differ
        call = RecordedCall(
            entry.location,
            input_tokens=max(tokens, 1),
            output_tokens=max(output_tokens, 1),
            blocks=blocks,
            sizes=[self._block_tokens] * len(blocks),
        )
        return _TimedCall(
            call, begin, begin + (entry.seconds("api_time") or 0.0), entry.seconds("think_time")
        )

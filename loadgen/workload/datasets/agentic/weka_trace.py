"""`WekaSession`: sessions of coding agents with subagents, in the format of Weka's KV cache tester, which AgentX uses.

A session is an object with `block_size`, `hash_id_scope` and `requests`: calls (`type` "n" or "s") with `t`, `in`,
`out`, `hash_ids`, `api_time` and `think_time`, times in seconds, and subagents (`type` "subagent") with `requests`.
Sources: https://github.com/callanjfox/kv-cache-tester, and AIPerf's loader `weka_trace_models.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.workload.datasets.agentic.json_row import JsonRow, read_rows
from loadgen.workload.datasets.agentic.recorded_session import RecordedCall, RecordedSession, direct_predecessors
from loadgen.workload.datasets.block_texts import check_blocks

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

    Calls of one agent wait for each other as their times show. The first calls of a subagent wait for the call before
    it in the list, and the first call of the parent that begins after a subagent's end waits for that subagent.

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
        ordered = sorted(self._timed_calls, key=lambda each: each.begin)  # a stable sort: parents stay before subagents
        numbers = {id(each): number for number, each in enumerate(ordered)}
        for number, each in enumerate(ordered):
            before = each.waited_for or ordered[: min(1, number)]  # there is one first call
            each.call.after = tuple(sorted(numbers[id(one)] for one in before))
            if len(before) == 1 and each.think_s is not None:
                each.call.delay_s = each.think_s
            elif before:
                each.call.delay_s = max(0.0, each.begin - max(one.end for one in before))
        return [each.call for each in ordered]

    def _add(self, entries: list[JsonRow], spawner: _TimedCall | None, offset_s: float) -> list[_TimedCall]:
        """Add the calls of one agent and of its subagents; return those that none of them waits for."""
        own, agents = list[_TimedCall](), list[tuple[JsonRow, _TimedCall | None, float]]()
        for entry in entries:
            kind = entry.text("type")
            if kind in CALLS:
                own.append(self._timed_call(entry, spawner, offset_s))
            elif kind == SUBAGENT:
                agents.append((entry, own[-1] if own else spawner, offset_s + self._begin(entry)))
            else:
                raise entry.wrong("type", kind, f"n, s or {SUBAGENT}")
        own.sort(key=lambda each: each.begin)
        for each, before in zip(own, direct_predecessors([(each.begin, each.end) for each in own]), strict=True):
            each.waited_for = [own[number] for number in before] or ([spawner] if spawner else [])
        self._timed_calls += own
        followed = {id(one) for each in own for one in each.waited_for}
        last = [each for each in own if id(each) not in followed]
        for entry, by, at_s in agents:
            inner = entry.rows("requests")
            is_relative = any(offset_s + self._begin(each) < at_s for each in inner)
            ends = self._add(inner, by, at_s if is_relative else offset_s)
            began_later = (
                each for each in own if all(each.begin >= one.end and each.begin > one.begin for one in ends)
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

    def _timed_call(self, entry: JsonRow, spawner: _TimedCall | None, offset_s: float) -> _TimedCall:
        blocks = entry.fields.get("hash_ids") or []
        if not isinstance(blocks, list) or not all(type(each) is int and each >= 0 for each in blocks):
            raise entry.error("'hash_ids' is not a list of whole numbers of 64 bits")
        tokens, wanted = entry.integer("in", "input_length"), entry.integer("out", "output_length")
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
            output_tokens=max(wanted, 1),
            blocks=blocks,
            sizes=[self._block_tokens] * len(blocks),
        )
        return _TimedCall(call, begin, begin + (entry.seconds("api_time") or 0.0), entry.seconds("think_time"))

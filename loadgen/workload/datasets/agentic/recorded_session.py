"""`RecordedSession`: what an agent asked in one session, which of its calls waited for which, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loadgen.workload.prompt import UNPLANNED


@dataclass(slots=True)
class RecordedCall:
    """One call of a model. Its prompt has messages, or blocks of text that it shares with other calls.

    Attributes:
        location: Where it stands in its file.
        after: The numbers, from 0, of the calls that had to end before it, ascending; empty for the first.
        delay_s: Seconds from the end of the last of these until it was sent: a tool ran, or somebody thought.
        input_tokens: Tokens of the prompt; UNPLANNED if only its messages are known.
        output_tokens: Tokens of the answer; None if unknown.
        blocks: The names of the blocks with which the prompt begins; equal names are equal texts.
        sizes: The tokens of each block.
        messages: The messages of the prompt.
        fields: Further fields of the body of the request.
    """

    location: str
    after: tuple[int, ...] = ()
    delay_s: float = 0.0
    input_tokens: int = UNPLANNED
    output_tokens: int | None = None
    blocks: Sequence[int] = ()
    sizes: Sequence[int] = ()
    messages: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RecordedSession:
    """The calls of one session.

    Attributes:
        name: Its name in the file.
        calls: At least one, each after those that it waited for; only the first waited for none.
        is_global: Whether blocks of the same name in other sessions are the same.
    """

    name: str
    calls: list[RecordedCall]
    is_global: bool = False

    def without_first(self, count: int) -> "RecordedSession":
        """Return the session without its first calls; what waited for these alone waits for the first of the others."""
        kept = []
        for number, call in enumerate(self.calls[count:]):
            after = tuple(before - count for before in call.after if before >= count)
            kept.append(replace(call, after=after) if after else replace(call, after=(0,) * (number > 0), delay_s=0.0))
        return replace(self, calls=kept)


def direct_predecessors(times: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return which calls each call waited for, as far as times show it.

    A call waited for those that had ended when it began, but for those that others of these had waited for in turn.
    (Fishburn, Interval Orders and Interval Graphs, 1985: the cover relation of the order by time.)

    Args:
        times: Begin and end of each call, ascending by begin.

    Returns:
        For each call the numbers of others, ascending; empty if it began before any had ended.
    """
    by_end = sorted(range(len(times)), key=lambda number: (times[number][1], number))
    found, direct, ended = list[list[int]](), list[int](), 0
    for number, (begin, _) in enumerate(times):
        while ended < len(by_end) and by_end[ended] < number and times[by_end[ended]][1] <= begin:
            direct.append(by_end[ended])
            ended += 1
        last = max(direct, default=-1)  # the one that began last waited for all that had ended by then
        direct = [each for each in direct if each == last or times[each][1] > times[last][0]]
        found.append(sorted(direct))
    return found

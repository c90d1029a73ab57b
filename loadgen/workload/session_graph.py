"""`SessionGraph`: which requests follow which; `SessionOrder` checks it while the prompts are made."""

from array import array
from itertools import accumulate

from loadgen.errors import BadInput
from loadgen.workload.prompt import Prompt

FLAG = "--dataset-name"


class SessionOrder:
    """Checks that each prompt follows prompts of its own session alone.

    Attributes:
        sessions: How many sessions have begun.
    """

    def __init__(self) -> None:
        self.sessions = 0
        self._prompts = 0  # of the last session

    def add(self, prompt: Prompt) -> None:
        """Check the next prompt.

        Raises:
            BadInput: It follows a prompt outside its session, or its think time is negative.
        """
        if not prompt.after:
            self.sessions += 1
            self._prompts = 1
            return
        if not self.sessions:
            remedy = "begin with a prompt that follows none"
            raise BadInput(FLAG, f"the first prompt follows another one ({prompt.source})", remedy)
        for back in prompt.after:
            if not 0 < back <= self._prompts:
                problem = f"{prompt.source}: follows the prompt {back} places before it, which is not in its session"
                raise BadInput(FLAG, problem, f"name prompts from 1 to {self._prompts} places before it")
        if len(set(prompt.after)) < len(prompt.after):
            raise BadInput(FLAG, f"{prompt.source}: follows one prompt twice", "name each prompt once")
        if prompt.think_ns < 0:
            problem = f"{prompt.source}: the think time is {prompt.think_ns} ns"
            raise BadInput(FLAG, problem, "give 0 or more")
        self._prompts += 1


class SessionGraph:
    """Which requests follow which.

    A run that sends more requests than the store has rows repeats the rows; so do their sessions.

    Args:
        after: How many rows back those lie that each row follows, row by row.
        ends: Where the part of each row in `after` ends, ascending.
    """

    def __init__(self, after: "array[int]", ends: "array[int]") -> None:
        self._back, self._back_ends = after, ends
        counts = array("q", bytes(8 * len(ends)))  # followers of each row
        rows = array("q", (row for row in range(len(ends)) for _ in _part(after, ends, row)))
        for row, back in zip(rows, after, strict=True):
            counts[row - back] += 1
        self._ahead, self._ahead_ends = array("q", bytes(8 * len(after))), array("q", accumulate(counts))
        for row, back in zip(rows, after, strict=True):
            counts[row - back] -= 1
            self._ahead[self._ahead_ends[row - back] - 1 - counts[row - back]] = back

    def predecessors(self, index: int) -> list[int]:
        """Return the numbers of the requests that request `index` follows, in the order of its prompt's `after`."""
        return [index - rows for rows in _part(self._back, self._back_ends, index % len(self._back_ends))]

    def followers(self, index: int) -> list[int]:
        """Return the numbers of the requests that follow request `index`, ascending."""
        return [index + rows for rows in _part(self._ahead, self._ahead_ends, index % len(self._ahead_ends))]


def _part(values: "array[int]", ends: "array[int]", row: int) -> "array[int]":
    return values[ends[row - 1] if row else 0 : ends[row]]

"""`SessionGraph`: which requests follow which; `SessionOrder` checks it while the prompts are made."""

from array import array
from collections.abc import Sequence
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
        self._place = 0  # of the next prompt in its session

    def add(self, prompt: Prompt) -> None:
        """Check the next prompt.

        Raises:
            BadInput: It follows a prompt outside its session, or its think time is negative.
        """
        if not prompt.after:
            self.sessions += 1
            self._place = 1
            return
        if not self.sessions:
            remedy = "begin with a prompt that follows none"
            raise BadInput(FLAG, f"the first prompt follows another one ({prompt.source})", remedy)
        for back in prompt.after:
            if not 0 < back <= self._place:
                problem = f"{prompt.source}: follows the prompt {back} places before it, which is not in its session"
                raise BadInput(FLAG, problem, f"name prompts from 1 to {self._place} places before it")
        if len(set(prompt.after)) < len(prompt.after):
            raise BadInput(FLAG, f"{prompt.source}: follows one prompt twice", "name each prompt once")
        if prompt.think_ns < 0:
            problem = f"{prompt.source}: the think time is {prompt.think_ns} ns"
            raise BadInput(FLAG, problem, "give 0 or more")
        self._place += 1


class SessionGraph:
    """Which rows of a store follow which.

    Args:
        after: How many rows back those lie that each row follows, row by row.
        ends: Where the part of each row in `after` ends, ascending.
    """

    def __init__(self, after: "array[int]", ends: "array[int]") -> None:
        self._after, self._ends = after, ends
        counts = array("q", bytes(8 * len(ends)))  # followers of each row
        rows = array("q", (row for row in range(len(ends)) for _ in range(*self._part(row))))
        for row, back in zip(rows, after, strict=True):
            counts[row - back] += 1
        self._follower_ends = array("q", accumulate(counts))
        self._ahead = array("q", bytes(8 * len(after)))
        for row, back in zip(rows, after, strict=True):
            counts[row - back] -= 1
            self._ahead[self._follower_ends[row - back] - 1 - counts[row - back]] = back

    def __len__(self) -> int:
        return len(self._ends)

    def back(self, row: int) -> Sequence[int]:
        """Return how many rows back those lie that `row` follows."""
        return self._after[slice(*self._part(row))]

    def ahead(self, row: int) -> Sequence[int]:
        """Return how many rows ahead those lie that follow `row`, ascending."""
        return self._ahead[self._follower_ends[row - 1] if row else 0 : self._follower_ends[row]]

    def _part(self, row: int) -> tuple[int, int]:
        return self._ends[row - 1] if row else 0, self._ends[row]

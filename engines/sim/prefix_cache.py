"""Prefix cache: blocks of KV cache that sequences with a common prefix share, kept until their
memory is needed.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

BLOCK = 16  # tokens


def block_names(pieces: Sequence[object]) -> tuple[int, ...]:
    """Return a name for each full block of a prompt; two names are equal if all tokens up to the
    block's end are.
    """
    names: list[int] = []
    name = 0
    for begin in range(0, len(pieces) - BLOCK + 1, BLOCK):
        name = hash((name, *pieces[begin : begin + BLOCK]))
        names.append(name)
    return tuple(names)


class PrefixCache:
    """The blocks in memory: used by running sequences, or idle, in the order of their last use.

    Attributes:
        queried: Prompt tokens that were looked up.
        hit: Prompt tokens that were found.
    """

    def __init__(self) -> None:
        self.queried = self.hit = 0
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def idle_tokens(self) -> int:
        """Tokens of blocks that no sequence uses."""
        return BLOCK * len(self._idle)

    def count_cached(self, names: Iterable[int]) -> int:
        """Return how many of the first blocks of a prompt are in memory."""
        count = 0
        for name in names:
            if name not in self._users and name not in self._idle:
                break
            count += 1
        return count

    def unused(self, names: Iterable[int]) -> int:
        """Return the tokens of those blocks that no sequence uses."""
        return BLOCK * sum(name not in self._users for name in names)

    def take(self, names: Iterable[int]) -> int:
        """Use blocks for a sequence; return the tokens of those that no other sequence uses."""
        fresh = 0
        for name in names:
            self._idle.pop(name, None)
            users = self._users.get(name, 0)
            self._users[name] = users + 1
            if not users:
                fresh += 1
        return BLOCK * fresh

    def release(self, names: Sequence[int]) -> int:
        """Release blocks, the end of the prompt first; return the tokens of those that no
        sequence uses now.
        """
        freed = 0
        for name in reversed(names):
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self._idle[name] = None
                freed += 1
        return BLOCK * freed

    def shrink(self, tokens: int) -> None:
        """Remove idle blocks until they have at most `tokens` tokens."""
        while self._idle and self.idle_tokens > tokens:
            self._idle.popitem(last=False)

    def clear(self) -> None:
        """Remove all idle blocks."""
        self._idle.clear()

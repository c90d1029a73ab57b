"""Prefix cache: blocks of KV cache that sequences with the same beginning share, and that stay until room is needed."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

BLOCK = 16  # tokens


def block_names(pieces: Sequence[object]) -> tuple[int, ...]:
    """Name each full block of a prompt, given as its tokens: two names are equal when all tokens up to there are."""
    names: list[int] = []
    name = 0
    for begin in range(0, len(pieces) - BLOCK + 1, BLOCK):
        name = hash((name, *pieces[begin : begin + BLOCK]))
        names.append(name)
    return tuple(names)


class PrefixCache:
    """Which blocks there are: in use by running sequences, or idle, the one that was used longest ago first.

    Attributes:
        queried: Tokens of prompts that were looked up.
        hit: Those that were found.
    """

    def __init__(self) -> None:
        self.queried = self.hit = 0
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def idle_tokens(self) -> int:
        """Tokens of blocks that nobody uses."""
        return BLOCK * len(self._idle)

    def found(self, names: Iterable[int]) -> int:
        """Return how many of the first blocks of a prompt are there."""
        count = 0
        for name in names:
            if name not in self._users and name not in self._idle:
                break
            count += 1
        return count

    def unused(self, names: Iterable[int]) -> int:
        """Return how many tokens `take` would bring into use."""
        return BLOCK * sum(name not in self._users for name in names)

    def take(self, names: Iterable[int]) -> int:
        """Use blocks, new ones or old; return the tokens of those that nobody else uses."""
        fresh = 0
        for name in names:
            self._idle.pop(name, None)
            users = self._users.get(name, 0)
            self._users[name] = users + 1
            fresh += not users
        return BLOCK * fresh

    def release(self, names: Sequence[int]) -> int:
        """Use blocks no longer; return the tokens of those that nobody uses now. The end of a prompt goes first."""
        freed = 0
        for name in reversed(names):
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self._idle[name] = None
                freed += 1
        return BLOCK * freed

    def shrink(self, tokens: int) -> None:
        """Forget idle blocks until they have no more than `tokens`."""
        while self._idle and self.idle_tokens > tokens:
            self._idle.popitem(last=False)

    def clear(self) -> None:
        """Forget all idle blocks."""
        self._idle.clear()

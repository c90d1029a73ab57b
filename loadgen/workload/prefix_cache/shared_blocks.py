"""`SharedBlocks`: how much of the input of a run a prefix cache can give back at best, block by block."""

from array import array

import numpy as np

from loadgen.workload.prefix_cache.token_ends import TokenizedPrompt


class SharedBlocks:
    """Names the blocks of prompts, and counts those that an earlier prompt has too.

    A block has a name that depends on all tokens up to its end. A prompt finds a block if the name was seen before. It
    never finds its last token, which a server computes to have the first one of the answer.

    Args:
        block_size: Tokens of a block.

    Attributes:
        tokens: Tokens of the prompts of the run so far.
    """

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        self._names, self._looked_up = array("q"), array("b")  # 9 bytes a block: sets of names would take a hundred
        self.tokens = 0

    def keep(self, prompt: TokenizedPrompt, model: str) -> None:
        """Put a prompt into the cache before the run."""
        self._add(self._names_of(prompt, model), 0)

    def add(self, prompt: TokenizedPrompt, model: str) -> None:
        """Add the next prompt of the run; what it repeats up to an answer is there since that answer."""
        names = self._names_of(prompt, model)
        if prompt.answered:
            self._add(names[: prompt.answered // self._size], 0)
        self._add(names, max(0, prompt.tokens - 1) // self._size)
        self.tokens += prompt.tokens

    @property
    def count(self) -> int:
        """Names so far."""
        return len(self._names)

    def shared_tokens(self) -> int:
        """Count the tokens that a cache can give back which keeps all it has seen."""
        if not self._names:
            return 0
        names, looked_up = np.frombuffer(self._names, np.int64), np.frombuffer(self._looked_up, np.int8)
        order = np.argsort(names, kind="stable")  # of equal names the earliest first
        is_first = np.ones(len(names), np.bool_)
        is_first[1:] = names[order][1:] != names[order][:-1]
        found = int(looked_up.sum()) - int(looked_up[order][is_first].sum())
        return found * self._size

    def _add(self, names: list[int], looked_up: int) -> None:
        self._names.extend(names)
        found = min(looked_up, len(names))
        self._looked_up.extend([1] * found + [0] * (len(names) - found))

    def _names_of(self, prompt: TokenizedPrompt, model: str) -> list[int]:
        size, text, names = self._size, prompt.text, []
        whole_before, before = divmod(prompt.before, size)
        cuts = prompt.ends[size - before - 1 :: size].tolist()
        name, begin = hash(model), 0
        for end in [0] * whole_before + cuts:
            name = hash((name, text[begin:end]))
            names.append(name)
            begin = end
        return names

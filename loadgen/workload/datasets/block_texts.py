"""`BlockTexts`: prompts that begin with blocks of text; equal blocks are equal texts."""

import math
from collections.abc import Sequence

import numpy as np

from loadgen.workload.tokenizer.random_text import Prefix, RandomText

CACHED_TOKENS = 1 << 23  # tokens of blocks whose texts are in memory: about 50 MB


def check_blocks(blocks: int, block_tokens: int, input_tokens: int) -> None:
    """Check that so many blocks, the last of which may be cut, fit into a prompt.

    Raises:
        ValueError: With the reason.
    """
    if blocks > math.ceil(input_tokens / block_tokens):
        raise ValueError(f"{blocks} blocks of {block_tokens} tokens are more than its {input_tokens} input tokens")


class BlockTexts:
    """Makes texts of blocks of random words, exact to the token.

    A block is a row of random words (`RandomText`): its words do not depend on how many of them a prompt uses, nor on
    what comes before them. The blocks that were used last stay in memory, because later prompts begin with them.

    Args:
        drawing: Draws the words.
    """

    def __init__(self, drawing: RandomText) -> None:
        self._drawing = drawing
        self._texts = dict[tuple[int, int], str]()  # by row and tokens
        self._tokens = 0  # of those together

    def text(self, rows: Sequence[int], sizes: Sequence[int], tokens: int, rest: int) -> str:
        """Make a text: the blocks in order, the last one cut at the end of the text, or else words of its own.

        Args:
            rows: The row of each block.
            sizes: The tokens of each block.
            tokens: The tokens of the text, without special tokens, at least 1.
            rest: The row of the words after the blocks.
        """
        whole, before = 0, 0  # blocks with words after them, and their tokens
        while whole < len(rows) and before + sizes[whole] < tokens:
            before += sizes[whole]
            whole += 1
        last = rows[whole] if whole < len(rows) else rest
        prefix = self._blocks(list(zip(rows[:whole], sizes, strict=False)))
        (text,) = self._drawing.texts(np.array([last], dtype=np.uint64), [tokens - before], [Prefix(prefix, before)])
        return text

    def _blocks(self, blocks: list[tuple[int, int]]) -> str:
        missing = [block for block in dict.fromkeys(blocks) if block not in self._texts]
        if missing:
            rows, sizes = zip(*missing, strict=True)
            self._texts.update(zip(missing, self._drawing.texts(np.array(rows, np.uint64), sizes), strict=True))
            self._tokens += sum(sizes)
        for block in blocks:
            self._texts[block] = self._texts.pop(block)  # the one that was used last is the last
        text = " ".join(self._texts[block] for block in blocks)
        while self._tokens > CACHED_TOKENS:
            oldest = next(iter(self._texts))
            del self._texts[oldest]
            self._tokens -= oldest[1]
        return text

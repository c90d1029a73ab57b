"""The words of a tokenizer from the cache: to find them takes half a second."""

from typing import Any

import numpy as np

from loadgen.workload.tokenizer import fact_cache
from loadgen.workload.tokenizer.exact_text import Words
from loadgen.workload.tokenizer.tokenizer import Tokenizer

VERSION = 1  # of the rule of `Words.of`


def words_of(tokenizer: Tokenizer) -> Words:
    """Return the words of a tokenizer: read them from the cache, or find and store them.

    Raises:
        BadInput: The tokenizer has too few words.
    """

    def find() -> list[Any]:
        found = Words.of(tokenizer)
        return [found.additive, found.items.tolist()]

    additive, words = fact_cache.get_or_make("words", [VERSION, tokenizer.sha256], find)
    return Words(np.array(words, dtype=object), additive)

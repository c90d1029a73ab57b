"""The words of a tokenizer from the cache: to find them takes half a second."""

from typing import Any

from loadgen.workload.tokenizer import fact_cache
from loadgen.workload.tokenizer.exact_text import Words
from loadgen.workload.tokenizer.tokenizer import Tokenizer

KIND, VERSION = "words", 1  # VERSION: of the rule of `Words.of`


def words_of(tokenizer: Tokenizer) -> Words:
    """Return the words of a tokenizer: read them from the cache, or find and store them.

    Raises:
        BadInput: The tokenizer has too few words.
    """

    def find() -> list[Any]:
        found = Words.of(tokenizer)
        return [found.additive, found.items]

    additive, words = fact_cache.get_or_make(KIND, tokenizer.sha256, [VERSION], find)
    return Words(tuple(words), additive)


def are_known(sha256: str) -> bool:
    """Return whether the words of the tokenizer with this hash are in the cache."""
    return fact_cache.find(KIND, sha256, [VERSION]) is not None

"""Words: text whose number of tokens is known before it is encoded.

A word is a token that spells a space and 2-14 ASCII letters, that stays this one token when it follows a word, and that
is one token too where it begins a text. So a text of n words joined by spaces is n tokens: with byte-level BPE,
SentencePiece, WordPiece and WordLevel alike, and whether or not it is trimmed.

That holds of whole texts. Right behind something else, such as the mark or the line end of a chat template, the first
word may be another number of tokens: SentencePiece itself puts a space before a text and nowhere else, so that there
1,172 of Mistral's 4,096 words are several tokens; of Qwen3's, 52 join with a `>` before them. What a template adds is
therefore counted with words in it, never assumed (`loadgen.workload.tokenizer.token_count`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.workload.tokenizer.tokenizer import FIELD, Tokenizer

Count = Callable[[Sequence[str]], list[int]]  # the tokens of each text
MOST = 4096  # 12 bits a word: two texts of 4 words are equal once in 2**48
FEWEST = 256
SCANNED = 4096  # ids looked at between two checks whether the words suffice
REPAIRS = 32
WORD = re.compile("[ Ġ▁]?([A-Za-z]{2,14})")
ACROSS = re.compile("[A-Za-z][ Ġ▁]+[A-Za-z]")  # a token that can begin in one word and end in another


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one tokenizer.

    Attributes:
        items: The words, an array of str whose length is a power of two.
        additive: Whether the tokens of words always add up. Where a vocabulary has tokens that span words they may not,
            and what is made of these words needs `fitted`.
    """

    items: NDArray[np.object_]
    additive: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Words":
        """Find a tokenizer's words, lowest ids first, because a vocabulary holds common words before rare ones.

        Raises:
            BadInput: It has fewer than 256.
        """
        found: dict[str, None] = {}
        for start in range(0, tokenizer.size, SCANNED):
            if len(found) >= MOST:
                break
            tokens = (WORD.fullmatch(tokenizer.token(number)) for number in range(start, start + SCANNED))
            fresh = list(dict.fromkeys(token[1] for token in tokens if token and token[1] not in found))
            thrice = tokenizer.encode_batch([f"{word} {word} {word}" for word in fresh])
            found.update((word, None) for word, ids in zip(fresh, thrice, strict=True) if _stays(word, ids, tokenizer))
        if len(found) < FEWEST:
            problem = f"{tokenizer.name} has {len(found)} words of one token each, and random prompts need {FEWEST}"
            raise BadInput(FIELD, problem, "use another tokenizer, or a data set with texts of its own")
        words = list(found)[: min(MOST, 1 << (len(found).bit_length() - 1))]
        return cls(np.array(words, dtype=object), _add_up(words, tokenizer))


def _stays(word: str, ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Whether three times the word is three tokens that spell it, the second the same as the third."""
    if len(ids) != 3 or ids[1] != ids[2]:
        return False
    spelled = (WORD.fullmatch(tokenizer.token(number)) for number in ids[:2])
    return all(match and match[1] == word for match in spelled)


def _add_up(words: Sequence[str], tokenizer: Tokenizer) -> bool:
    """Whether each word is tokenized by itself: the text is cut at every word first, or no token spans two."""
    text = " ".join(words)
    if tokenizer.count([text]) != [len(words)]:
        return False
    return tokenizer.pieces(text) == len(words) or not ACROSS.search("\n".join(tokenizer.vocab()))


def fitted(
    rows: Sequence[Sequence[str]], wanted: Sequence[int], tokenizer: Tokenizer, count: Count | None = None
) -> list[str]:
    """Make texts of exactly the wanted numbers of tokens by encoding them and taking more or fewer words.

    Args:
        rows: The words that each text may use, in their order, with some to spare.
        wanted: Tokens of each text.
        tokenizer: What counts them.
        count: What counts them in its place, such as a chat template with it.

    Raises:
        BadInput: The words of a row run out, or its count keeps missing.
    """
    count = count or tokenizer.count
    taken = list(wanted)
    for _ in range(REPAIRS):
        texts = [" ".join(row[:take]) for row, take in zip(rows, taken, strict=True)]
        missing = [want - found for want, found in zip(wanted, count(texts), strict=True)]
        if not any(missing):
            return texts
        taken = [max(0, take + more) for take, more in zip(taken, missing, strict=True)]
    problem = f"{tokenizer.name} joins words into tokens, so that texts of an exact length cannot be made of them"
    raise BadInput(FIELD, problem, "use another tokenizer, or a data set with texts of its own")

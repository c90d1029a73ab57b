"""`Words` of a tokenizer: a text of n of them, joined by spaces, has exactly n tokens.

A word is a token that spells a space and 2-14 ASCII letters, that stays this one token when it
follows a word, and that is one token also at the beginning of a text. So a text of n words has n
tokens with byte-level BPE, SentencePiece, WordPiece and WordLevel, trimmed or not.

This holds for whole texts. After a marker or line end of a chat template, the first word may have
more tokens: SentencePiece puts a space only before a whole text, so 1,172 of Mistral's 4,096 words
are then several tokens; 52 of Qwen3's words join with a preceding `>`.
`loadgen.workload.chat_template` therefore counts the tokens that a template adds with words in it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from loadgen.errors import BadInput
from loadgen.workload.files import cache
from loadgen.workload.tokenizer.tokenizer import TOKENIZER, Tokenizer

Count = Callable[[Sequence[str]], list[int]]  # returns the tokens of each text
KIND, VERSION = "words", 1  # of the cached words; VERSION: of the rule of `Words.of`
MAX_WORDS = 4096  # 12 bits per word: two texts of 4 words are equal once in 2**48
MIN_WORDS = 256
SCAN_IDS = 4096  # ids scanned between two checks of the number of words
REPAIRS = 32
WORD = "[ Ġ▁]?([A-Za-z]{2,14})"
ACROSS = "[A-Za-z][ Ġ▁]+[A-Za-z]"  # a token that spans two words


class Words(Struct, frozen=True):
    """The words of one tokenizer.

    Attributes:
        items: The words; their number is a power of two.
        additive: Whether the tokens of words always add up. They may not if a token of the
            vocabulary spans two words; texts then need `fit_texts`.
    """

    items: tuple[str, ...]
    additive: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Words":
        """Find the words of a tokenizer, lowest ids first, because vocabularies list common words
        first.

        Raises:
            BadInput: It has fewer than MIN_WORDS.
        """
        word_form = re.compile(WORD)
        candidates: dict[str, None] = {}
        for start in range(0, tokenizer.size, SCAN_IDS):
            if len(candidates) >= MAX_WORDS:
                break
            tokens = (
                word_form.fullmatch(tokenizer.token(number))
                for number in range(start, start + SCAN_IDS)
            )
            fresh = list(
                dict.fromkeys(token[1] for token in tokens if token and token[1] not in candidates)
            )
            thrice = tokenizer.encode_batch([f"{word} {word} {word}" for word in fresh])
            for word, ids in zip(fresh, thrice, strict=True):
                if len(ids) != 3 or ids[1] != ids[2]:
                    continue
                spelled = (word_form.fullmatch(tokenizer.token(number)) for number in ids[:2])
                if all(match and match[1] == word for match in spelled):
                    candidates[word] = None
        if len(candidates) < MIN_WORDS:
            problem = (
                f"{tokenizer.name} has {len(candidates)} words of one token, and random "
                f"prompts need {MIN_WORDS}"
            )
            raise BadInput(
                TOKENIZER, problem, "use another tokenizer, or a data set with its own texts"
            )
        words = list(candidates)[: min(MAX_WORDS, 1 << (len(candidates).bit_length() - 1))]
        text = " ".join(words)
        # Each word is tokenized alone: the text is split at words first, or no token spans two.
        tokens_add_up = tokenizer.count([text]) == [len(words)] and (
            tokenizer.pieces(text) == len(words)
            or not re.search(ACROSS, "\n".join(tokenizer.vocab()))
        )
        return cls(tuple(words), tokens_add_up)


def words_of(tokenizer: Tokenizer) -> Words:
    """Return the words of a tokenizer from the cache, or find and store them, which takes half a
    second.
    """

    def find() -> list[Any]:
        new_words = Words.of(tokenizer)
        return [new_words.additive, new_words.items]

    additive, words = cache.get_or_make_fact(KIND, tokenizer.sha256, [VERSION], find)
    return Words(tuple(words), additive)


def are_known(sha256: str) -> bool:
    """Return whether the words of the tokenizer with this hash are in the cache."""
    return cache.find_fact(KIND, sha256, [VERSION]) is not None


def fit_texts(
    rows: Sequence[Sequence[str]],
    lengths: Sequence[int],
    tokenizer: Tokenizer,
    count: Count | None = None,
) -> list[str]:
    """Make texts of exact numbers of tokens: encode them, and take more or fewer words until the
    counts are right.

    Args:
        rows: The words of each text in order, with spare ones.
        lengths: The tokens of each text.
        tokenizer: Counts the tokens.
        count: Counts them instead, for example with a chat template.

    Raises:
        BadInput: A row has too few words, or the counts do not converge.
    """
    count = count or tokenizer.count
    taken = list(lengths)
    for _ in range(REPAIRS):
        texts = [" ".join(row[:take]) for row, take in zip(rows, taken, strict=True)]
        missing = [want - actual for want, actual in zip(lengths, count(texts), strict=True)]
        if not any(missing):
            return texts
        taken = [max(0, take + more) for take, more in zip(taken, missing, strict=True)]
    problem = (
        f"{tokenizer.name} joins words into tokens, so texts of an exact length cannot be made"
    )
    raise BadInput(TOKENIZER, problem, "use another tokenizer, or a data set with its own texts")

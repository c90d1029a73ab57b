"""`Salt`: other first words in each run, so that a server finds no prompt in its prefix cache
from an earlier run.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Self

from msgspec import Struct, structs

from loadgen.config.load import CACHE
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.prompt import Dataset, Prompt, content_of
from loadgen.workload.tokenizer.exact_text import Words, words_of
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_for

HEAD_TOKENS = (
    4  # replaced at the beginning of a text: of 4,096 words, two heads are equal once in 2**48
)
MAX_HEAD_TOKENS = 64  # where the text cannot be divided after fewer tokens
WINDOW_TOKENS = 16  # after the head: the end of a head must not depend on the text beyond
REMEDY = f"give {setting.cache} cold, or another data set"


class Salt(Struct, frozen=True, dict=True):
    """Replaces the first tokens of each prompt by as many words of one token.

    Word i is a function of the salt and of the first i tokens. So texts that begin alike still do,
    and to the same token; others begin with other words. The number of tokens of a text stays the
    same.

    Attributes:
        value: The salt, in hex.
        tokenizer: Counts the tokens.
        words: Its words.
    """

    value: str
    tokenizer: Tokenizer
    words: Words

    @classmethod
    def of(cls, value: str, dataset: Dataset, settings: RunSettings) -> Self:
        """Create the salt of the prompts of a data set.

        Args:
            value: The salt.
            dataset: The data set, whose tokenizer is used if it has one.
            settings: The settings of the run.

        Raises:
            BadInput: The tokenizer cannot be loaded, or has too few words.
        """
        tokenizer = tokenizer_for(dataset, settings)
        return cls(value, tokenizer, words_of(tokenizer))

    def apply(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts with the salt; their digest remains that of the prompts without it.

        Raises:
            BadInput: A prompt begins with an image, or its length would change.
        """
        for prompt in prompts:
            yield structs.replace(
                prompt,
                text=self._salted(prompt.text, prompt.source) if prompt.text else "",
                texts=tuple(self._salted(text, prompt.source) for text in prompt.texts),
                messages=self._salted_chat(prompt),
                unsalted=content_of(prompt),
            )

    def _salted_chat(self, prompt: Prompt) -> tuple[dict[str, Any], ...]:
        if not prompt.messages:
            return ()
        first, *others = prompt.messages
        content = first.get("content")
        if isinstance(content, list) and content and content[0].get("type") == "text":
            text = content[0] | {"text": self._salted(content[0]["text"], prompt.source)}
            return first | {"content": [text, *content[1:]]}, *others
        if not isinstance(content, str):
            problem = f"{prompt.source} does not begin with a text, so no salt can come first"
            raise BadInput(CACHE, problem, REMEDY)
        return first | {"content": self._salted(content, prompt.source)}, *others

    def _salted(self, text: str, source: str) -> str:
        head = text.split(" ", HEAD_TOKENS)
        if self.words.additive and all(word in self._known for word in head[:HEAD_TOKENS]):
            rest = f" {head[HEAD_TOKENS]}" if len(head) > HEAD_TOKENS else ""
            keys = [" ".join(head[:count]) for count in range(1, min(len(head), HEAD_TOKENS) + 1)]
            return self._drawn(keys) + rest
        (ends,) = self.tokenizer.ends([text])
        for tokens in range(min(HEAD_TOKENS, len(ends)), min(MAX_HEAD_TOKENS, len(ends)) + 1):
            for words in range(tokens, 2 * tokens + 1):  # words may join into one token
                salted = self._replaced(text, ends, tokens, words)
                if salted is not None and self.tokenizer.count([salted]) == [len(ends)]:
                    return salted
        raise BadInput(
            CACHE, f"{source} cannot have a salt and keep its {len(ends)} tokens", REMEDY
        )

    def _replaced(self, text: str, ends: list[int], tokens: int, words: int) -> str | None:
        """Replace the first tokens by words; None if the number of tokens changes, as seen in a
        window after them.
        """
        cut, window = (
            [0, *ends][min(count, len(ends))] for count in (tokens, tokens + WINDOW_TOKENS)
        )
        keys = [text[:end] for end in ends[:tokens]]
        begin = self._drawn(keys + [f"{text[:cut]}\0{number}" for number in range(words - tokens)])
        salted, same = self.tokenizer.count([begin + text[cut:window], text[:window]])
        return begin + text[cut:] if salted == same else None

    def _drawn(self, keys: list[str]) -> str:
        items, salt = self.words.items, self.value.encode()
        digests = (hashlib.blake2b(key.encode(), digest_size=8, key=salt).digest() for key in keys)
        return " ".join(items[int.from_bytes(digest, "big") % len(items)] for digest in digests)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.words.items)

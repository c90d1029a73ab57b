"""The hash of the prompts of a run, and a mark for each prompt, to compare runs and to count repeated prompts."""

import hashlib
from array import array
from collections.abc import Container

import orjson

from loadgen.workload.prompt import Prompt


class PromptDigest:
    """Hash of prompts that are added in the order of sending, and the number of distinct ones.

    The hash covers text or messages, the fields of its own, and the output tokens. It does not cover source, tokenizer,
    model, times and salt.
    """

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._marks = array("q")  # 64-bit hashes: among 50 million, two collide once in 10,000 runs

    def add(self, prompt: Prompt) -> None:
        """Add the next prompt."""
        content = content_of(prompt)
        self._sha256.update(b"[%b,%d]\n" % (content, prompt.output_tokens))
        self._marks.append(hash(content))

    def marks(self) -> set[int]:
        """Return the distinct marks of the prompts so far, as `prompt_mark` returns them."""
        return set(self._marks)

    def count_marked(self, marks: Container[int]) -> int:
        """Count the prompts with one of these marks."""
        return sum(mark in marks for mark in self._marks)

    @property
    def first_mark(self) -> int:
        """The mark of the first prompt."""
        return self._marks[0]

    @property
    def sha256(self) -> str:
        """SHA-256 in hex over a JSON line for each prompt, `[TEXT, TEXTS OR MESSAGES, OUTPUT_TOKENS]`.

        With fields of its own, these follow the text: `[TEXT, FIELDS, OUTPUT_TOKENS]`.
        """
        return self._sha256.hexdigest()

    @property
    def distinct(self) -> int:
        """The number of distinct prompts. Output tokens do not count."""
        import numpy as np  # a measuring process has none, and never asks

        marks = np.sort(np.frombuffer(self._marks, dtype=np.int64))  # np.unique would import numpy.ma
        return len(marks[:1]) + int(np.count_nonzero(np.diff(marks)))


def prompt_mark(prompt: Prompt) -> int:
    """Return a 64-bit hash of what a prompt asks: its text or messages, and its fields."""
    return hash(content_of(prompt))


def content_of(prompt: Prompt) -> bytes:
    """Return what a prompt asks, without a salt: its text, texts or messages, and its fields, as JSON."""
    if prompt.unsalted:
        return prompt.unsalted
    content = orjson.dumps(prompt.messages or prompt.texts or prompt.text)
    return b"%b,%b" % (content, orjson.dumps(prompt.fields)) if prompt.fields else content

"""Digest: by what two runs, or a run and what was looked at before it, are known to ask the same prompts."""

import hashlib
from array import array
from collections.abc import Container

import numpy as np
import orjson

from loadgen.workload.prompt import Prompt


class Digest:
    """Of prompts that are added in the order of sending: one hash of them all, and how many of them differ.

    A prompt is what is asked: its text, or its messages, and the tokens wanted. Where it comes from, which tokenizer
    counted it, which model is asked and when, all that is no part of it.
    """

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._each = array("q")  # a 64-bit hash: two of 50 million are the same by chance once in 10,000 times

    def add(self, prompt: Prompt) -> None:
        """The next one."""
        asked = _asked(prompt)
        self._whole.update(b"[%b,%d]\n" % (asked, prompt.output_tokens))
        self._each.append(hash(asked))

    def seen(self) -> set[int]:
        """What tells the prompts apart so far, each once; `mark` of a prompt is in it if it was added."""
        return set(self._each)

    def asking(self, marks: Container[int]) -> int:
        """How many of the prompts have one of these marks."""
        return sum(each in marks for each in self._each)

    @property
    def first(self) -> int:
        """The mark of the first prompt."""
        return self._each[0]

    @property
    def sha256(self) -> str:
        """In hex: of a JSON line for each, `[PROMPT, OUTPUT_TOKENS]`, PROMPT being its text or the list of messages."""
        return self._whole.hexdigest()

    @property
    def distinct(self) -> int:
        """How many there are that ask unlike each other, whatever number of tokens is wanted."""
        return len(np.unique(np.frombuffer(self._each, dtype=np.int64)))


def mark(prompt: Prompt) -> int:
    """A number that two prompts share if they ask the same, and others but by chance do not."""
    return hash(_asked(prompt))


def _asked(prompt: Prompt) -> bytes:
    return orjson.dumps(prompt.messages or prompt.text)

"""Filler prompts of random words, for warm-ups of a data set that has no prompts beyond those of a run."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.random_text import RandomText

FIRST_ROW = 2**63  # rows of filler prompts; those of a run start at 0, prefixes go down from the last row


def filler_prompts(settings: RunSettings, lengths: Sequence[tuple[int, int]]) -> Iterator[Prompt]:
    """Yield a prompt of random words for each of the lengths.

    Args:
        lengths: Tokens of each prompt and of its answer. Without a tokenizer, a word counts as a token.
    """
    seed = seed_of(settings, "prompts")
    try:
        drawing = RandomText.of(settings)
    except BadInput:
        drawn = random.Random(seed)
        texts = [" ".join(drawn.choices(_words(), k=max(1, tokens))) for tokens, _ in lengths]
    else:
        rows = np.arange(len(lengths), dtype=np.uint64) + np.uint64(FIRST_ROW)
        texts = drawing.texts(rows, [max(1, tokens - drawing.tokenizer.special_tokens) for tokens, _ in lengths])
    for number, ((tokens, wanted), text) in enumerate(zip(lengths, texts, strict=True)):
        yield Prompt(text, tokens, wanted, f"stand-in/{seed}/{number}")


@cache
def _words() -> list[str]:
    text = (resources.files("loadgen.workload.datasets") / "prose.txt").read_text(encoding="utf-8")
    return sorted({word for word in text.split() if word.isalpha()})

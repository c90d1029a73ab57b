"""Lengths: the range from which each prompt's or answer's number of tokens is drawn."""

import json
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput

RATIO = "--random-range-ratio"
RATIO_REMEDY = 'give a number from 0 to below 1, or {"input": r, "output": r}'


@dataclass(frozen=True, slots=True)
class Lengths:
    """Whole numbers of tokens, all equally likely.

    Attributes:
        low: The least, at least 1.
        high: The most, itself included.
    """

    low: int
    high: int

    @classmethod
    def around(cls, flag: str, mean: int, ratio: float, *, less: int = 0) -> "Lengths":
        """Return [floor(m * (1 - ratio)), ceil(m * (1 + ratio))] with m = mean - less, as `vllm bench serve` means it.

        Args:
            flag: What set the mean, for the error.
            mean: Tokens asked for.
            ratio: How far lengths may go from it, in [0, 1).
            less: Tokens of it that are not to be drawn: the tokenizer's special ones.

        Raises:
            BadInput: The range reaches below one token.
        """
        beside = f" beside {less} special ones" if less else ""
        if mean - less < 1:
            raise BadInput(flag, f"{mean} leaves no token{beside}", f"give at least {less + 1}")
        low, high = math.floor((mean - less) * (1 - ratio)), math.ceil((mean - less) * (1 + ratio))
        if low < 1:
            problem = f"{ratio} of {flag} {mean} leaves no token{beside}"
            raise BadInput(RATIO, problem, "lower it, or ask for more tokens")
        return cls(low, high)

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw `count` lengths, int64; the first k do not depend on how many follow."""
        return generator.integers(self.low, self.high, size=count, endpoint=True)


def parse_ratios(text: str) -> tuple[float, float]:
    """Return the range ratios of prompts and answers from the text of `--random-range-ratio`.

    Raises:
        BadInput: It is neither a number nor an object with exactly `input` and `output`, or a ratio is not in [0, 1).
    """
    try:
        given = json.loads(text) if text.lstrip().startswith("{") else {"input": text, "output": text}
        ratios = {key: float(ratio) for key, ratio in given.items()}
    except (ValueError, TypeError) as error:
        raise BadInput(RATIO, f"{text!r} is not understood", RATIO_REMEDY) from error
    if ratios.keys() != {"input", "output"} or not all(0 <= ratio < 1 for ratio in ratios.values()):
        raise BadInput(RATIO, f"{text} is not in range", RATIO_REMEDY)
    return ratios["input"], ratios["output"]

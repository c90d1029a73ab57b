"""Lengths: how many tokens each prompt or answer is to have: a number, a range, a distribution or a list."""

import hashlib
import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.workload.files.mapped_file import named

MOST = 10_000_000  # tokens of one prompt: more than any model's context
LEAST_SHARE = 0.01  # of what a distribution draws that must lie in its bounds: the rest is drawn again
DRAWN = 1 << 20  # numbers drawn at a time
SHOWN = 40  # characters of what is no length
WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
FORMS = "write 1024, 900:1100, normal:MEAN:STDEV, lognormal:MEAN:STDEV (each with :MIN:MAX if wanted), 10,20 or @FILE"
INPUT_LEN, RATIO = "--random-input-len", "--random-range-ratio"
RATIO_REMEDY = 'give a number from 0 to below 1, or {"input": r, "output": r}'


@dataclass(frozen=True, slots=True)
class Lengths:
    """Whole numbers of tokens from `low` to `high`, by default all equally likely.

    Attributes:
        low: The least, at least 1.
        high: The most, itself included.
        law: How lengths are distributed.
        mean: Of a normal or lognormal length, in tokens, as if it had no bounds.
        stdev: Its standard deviation likewise.
        listed: The lengths themselves, in their order and then again, in place of drawn ones; may be empty.
        less: Tokens that are taken off every length, of which `low`, `high` and `listed` already are free.
    """

    low: int
    high: int
    law: Literal["uniform", "normal", "lognormal"] = "uniform"
    mean: float = 0.0
    stdev: float = 0.0
    listed: tuple[int, ...] = ()
    less: int = 0

    @classmethod
    def parse(cls, flag: str, given: int | str, ratio: float = 0.0, *, less: int = 0) -> "Lengths":
        """Read lengths as `--random-input-len` takes them; FORMS shows how they are written.

        Args:
            flag: What gave them, for the error.
            given: The lengths, in tokens.
            ratio: How far those of a plain number may go from it; 0 beside anything else.
            less: Tokens of each that are not to be drawn: the tokenizer's special ones.

        Raises:
            BadInput: They cannot be read or drawn, or reach below one token or above MOST.
        """
        text = str(given)
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise BadInput(flag, f"{given!r} is no length", FORMS)
        if WHOLE.fullmatch(text):
            return cls.around(flag, int(text), ratio, less=less)
        if ratio:
            remedy = f'write the range itself, or {{"input": r, "output": r}} with 0 for {flag}'
            raise BadInput(RATIO, f"{ratio:g} is for plain numbers, and {flag} is {text}", remedy)
        name, *rest = text.split(":")
        if name in ("normal", "lognormal"):
            made = cls._by_law(flag, text, "normal" if name == "normal" else "lognormal", rest)
        elif text.startswith("@"):
            made = cls._of_file(flag, named(flag, text[1:]))
        elif "," in text:
            made = cls._of_list(flag, text.split(","))
        else:
            ends = _numbers(flag, [name, *rest])
            if len(ends) != 2 or ends[0] > ends[1]:
                raise BadInput(flag, f"{text!r} is no range of lengths", "write the least and the most, as 900:1100")
            made = cls(ends[0], ends[1])
        return made.shorter(flag, less, f"{less} special ones")

    @classmethod
    def around(cls, flag: str, mean: int, ratio: float = 0.0, *, less: int = 0) -> "Lengths":
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
        _require_at_most(flag, high)
        return cls(low, high, less=less)

    def shorter(self, flag: str, by: int, what: str) -> "Lengths":
        """The same lengths with `by` tokens taken off each; a distribution begins where one token is left.

        Args:
            flag: What gave the lengths, for the error.
            by: Tokens, below 0 where lengths grow.
            what: The tokens that were taken off until now, for the error: "2 special ones".

        Raises:
            BadInput: That leaves no token of the shortest.
        """
        less, low = self.less + by, self.low - by
        if self.law != "uniform" and self.low == 1:
            low = 1
        if low < 1:
            raise BadInput(flag, f"{self.low + self.less} leaves no token beside {what}", f"give at least {less + 1}")
        listed = tuple(length - by for length in self.listed)
        return replace(self, low=low, high=self.high - by, listed=listed, less=less)._drawable(flag)

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw `count` lengths, int64; the first k do not depend on how many follow."""
        if self.listed:
            return np.resize(np.array(self.listed, dtype=np.int64), count)
        if self.law == "uniform":
            return generator.integers(self.low, self.high, size=count, endpoint=True)
        parts, missing = [np.empty(0, dtype=np.int64)], count
        while missing:
            law = self._normal()
            drawn = generator.normal(law.mean, law.stdev, min(missing, DRAWN))
            if self.law == "lognormal":
                np.exp(drawn, out=drawn)
            drawn = np.rint(drawn) - self.less
            parts.append(drawn[(self.low <= drawn) & (drawn <= self.high)].astype(np.int64))
            missing -= len(parts[-1])
        return np.concatenate(parts)

    @property
    def rule(self) -> str:
        """How they come about, in a word or two, for the result."""
        if self.listed:
            numbers = ",".join(str(length + self.less) for length in self.listed)
            return f"{len(self.listed)} listed, sha256 {hashlib.sha256(numbers.encode()).hexdigest()}"
        return "uniform" if self.law == "uniform" else f"{self.law}:{self.mean:g}:{self.stdev:g}"

    @classmethod
    def _by_law(cls, flag: str, text: str, law: Literal["normal", "lognormal"], parts: list[str]) -> "Lengths":
        try:
            mean, stdev = (float(part) for part in parts[:2])
            low, high = _numbers(flag, parts[2:]) or [1, MOST]
        except ValueError as error:
            remedy = f"write {law}:MEAN:STDEV or {law}:MEAN:STDEV:MIN:MAX"
            raise BadInput(flag, f"{text!r} is no distribution of lengths", remedy) from error
        if not (1 <= mean <= MOST and 0 < stdev <= MOST):
            problem = f"{text!r} has a mean below 1, no spread, or too much of them"
            raise BadInput(flag, problem, f"give tokens, the mean at most {MOST:,}")
        if low > high:
            raise BadInput(flag, f"{text!r} has no length from {low} to {high}", "write MIN before MAX")
        return cls(low, high, law, mean, stdev)._drawable(flag)

    @classmethod
    def _of_file(cls, flag: str, path: Path) -> "Lengths":
        remedy = "name a file of whole numbers, separated by white space"
        try:
            words = path.read_text(encoding="ascii").split()
        except OSError as error:
            raise BadInput(flag, f"{path}: {error.strerror}", remedy) from error
        except UnicodeDecodeError as error:
            raise BadInput(flag, f"{path} holds no whole numbers", remedy) from error
        if not words:
            raise BadInput(flag, f"{path} is empty", remedy)
        try:
            return cls._of_list(flag, words)
        except BadInput as error:
            raise BadInput(flag, f"{path}: {error.problem}", remedy) from error

    @classmethod
    def _of_list(cls, flag: str, words: list[str]) -> "Lengths":
        listed = _numbers(flag, words)
        return cls(min(listed), max(listed), listed=tuple(listed))

    def _normal(self) -> NormalDist:
        """What is drawn: the length itself, or its logarithm."""
        if self.law == "normal":
            return NormalDist(self.mean, self.stdev)
        variance = math.log1p((self.stdev / self.mean) ** 2)
        return NormalDist(math.log(self.mean) - variance / 2, math.sqrt(variance))

    def _drawable(self, flag: str) -> "Lengths":
        """Itself, once it is known that drawing comes to an end."""
        if self.law != "uniform":
            ends = [self.low + self.less - 0.5, self.high + self.less + 0.5]
            below, within = (self._normal().cdf(math.log(end) if self.law == "lognormal" else end) for end in ends)
            if within - below < LEAST_SHARE:
                problem = f"{self.rule} draws almost no length from {self.low + self.less} to {self.high + self.less}"
                raise BadInput(flag, problem, "let MIN and MAX hold its mean")
        return self


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


def plain(flag: str, given: int | str, rule: str) -> int:
    """Return a length that is one number, in tokens, for a rule that knows no ranges or distributions written out.

    Raises:
        BadInput: It is no whole number, below one token or above MOST.
    """
    if not WHOLE.fullmatch(str(given)):
        raise BadInput(flag, f"{given} is no plain number, and {rule} takes no other", "write a number of tokens")
    return Lengths.around(flag, int(given)).low


def _numbers(flag: str, words: list[str]) -> list[int]:
    for place, word in enumerate(words, 1):
        if not word.strip() and len(words) > 1:
            raise BadInput(flag, f"number {place} of {len(words)} is missing", FORMS)
        if not WHOLE.fullmatch(word):
            shown = repr(word) if len(word) <= SHOWN else f"{word[:SHOWN]!r}..."
            raise BadInput(flag, f"{shown} is no length", FORMS)
        if int(word) < 1:
            raise BadInput(flag, f"{word.strip()} leaves no token", "give at least 1")
        _require_at_most(flag, int(word))
    return [int(word) for word in words]


def _require_at_most(flag: str, tokens: int) -> None:
    if tokens > MOST:
        raise BadInput(flag, f"{tokens} tokens are more than any model takes", f"give at most {MOST:,}")

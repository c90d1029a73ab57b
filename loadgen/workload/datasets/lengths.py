"""`Lengths` of prompts or answers in tokens: a number, a range, a distribution or a list."""

import hashlib
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from loadgen.config import data
from loadgen.errors import BadInput, setting
from loadgen.workload.files.mapped_file import checked_path

if TYPE_CHECKING:
    from statistics import NormalDist

MAX_TOKENS = 10_000_000  # tokens of one prompt: more than any model's context
MIN_SHARE = 0.01  # minimum share of a distribution within its bounds; the rest is drawn again
DRAW_AT_ONCE = 1 << 20  # numbers drawn at a time
MAX_SHOWN = 40  # characters of invalid text in an error
WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
FORMS = (
    "write 1024, 900:1100, normal:MEAN:STDEV, lognormal:MEAN:STDEV (each with :MIN:MAX if "
    "wanted), clipped:MEAN:STDEV:MIN:MAX, 10,20 or @FILE"
)
INPUT_LEN = setting.random_input_len
CLIPPED = "clipped"
LAWS = ("normal", "lognormal", CLIPPED)


class Lengths(Struct, frozen=True):
    """Whole numbers of tokens from `low` to `high`, by default uniformly distributed.

    Attributes:
        low: The minimum, 1 or more.
        high: The maximum, inclusive.
        law: The distribution: uniform, normal, lognormal, or clipped: normal, and what is outside
            the bounds is moved to them, not drawn again.
        mean: The mean of a normal or lognormal distribution without bounds, tokens.
        stdev: Its standard deviation without bounds, tokens.
        listed: Lengths to use in order, and then again, instead of drawn ones; may be empty.
        less: Tokens subtracted from every length; `low`, `high` and `listed` are already reduced by
            it.
    """

    low: int
    high: int
    law: str = "uniform"
    mean: float = 0.0
    stdev: float = 0.0
    listed: tuple[int, ...] = ()
    less: int = 0

    @classmethod
    def parse(
        cls,
        flag: str,
        value: int | str,
        ratio: float = 0.0,
        *,
        less: int = 0,
        clamped: bool = False,
    ) -> "Lengths":
        """Parse lengths of `--random-input-len`; FORMS shows the forms.

        Args:
            flag: The flag, for the error.
            value: The lengths, in tokens.
            ratio: Relative half width of the range around a single number; 0 with any other form.
            less: Tokens to subtract: the special tokens of the tokenizer.
            clamped: Whether a range that the ratio makes begins at one token where it would begin
                below.

        Raises:
            BadInput: The text is invalid, or lengths are below one token or above MAX_TOKENS.
        """
        text = str(value)
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise BadInput(flag, f"invalid length {value!r}", FORMS)
        if WHOLE.fullmatch(text):
            return cls.around(flag, int(text), ratio, less=less, clamped=clamped)
        if ratio:
            remedy = f'write the range itself, or {{"input": r, "output": r}} with 0 for {flag}'
            raise BadInput(
                data.RANGE_RATIO,
                f"{ratio:g} applies only to a single number, and {flag} is {text}",
                remedy,
            )
        name, *rest = text.split(":")
        if name in LAWS:
            made = cls._by_law(flag, text, name, rest)
        elif text.startswith("@"):
            made = cls._of_file(flag, checked_path(flag, text[1:]))
        elif "," in text:
            made = cls._of_list(flag, text.split(","))
        else:
            ends = _numbers(flag, [name, *rest])
            if len(ends) != 2 or ends[0] > ends[1]:
                raise BadInput(
                    flag,
                    f"invalid range of lengths {text!r}",
                    "write MIN:MAX, for example 900:1100",
                )
            made = cls(ends[0], ends[1])
        return made.shorter(flag, less, f"{less} special tokens")

    @classmethod
    def around(
        cls, flag: str, mean: int, ratio: float = 0.0, *, less: int = 0, clamped: bool = False
    ) -> "Lengths":
        """Return the range [floor(m * (1 - ratio)), ceil(m * (1 + ratio))] with m = mean - less, as
        `vllm bench serve`.

        Args:
            flag: The flag of the mean, for the error.
            mean: The mean, tokens.
            ratio: Relative half width of the range, in [0, 1).
            less: Tokens to subtract: the special tokens of the tokenizer.
            clamped: Whether a minimum below one token becomes one, as vLLM does for answers.

        Raises:
            BadInput: The minimum is below one token.
        """
        special = f" after {less} special tokens" if less else ""
        if mean - less < 1:
            raise BadInput(flag, f"{mean} leaves no token{special}", f"give at least {less + 1}")
        low, high = math.floor((mean - less) * (1 - ratio)), math.ceil((mean - less) * (1 + ratio))
        low = max(low, 1) if clamped else low
        if low < 1:
            problem = f"{ratio} of {flag} {mean} leaves no token{special}"
            raise BadInput(data.RANGE_RATIO, problem, "lower it, or give more tokens")
        _require_at_most(flag, high)
        return cls(low, high, less=less)

    def shorter(self, flag: str, by: int, what: str) -> "Lengths":
        """Return the lengths reduced by a number of tokens. The minimum of a distribution stays at
        one token.

        Args:
            flag: The flag of the lengths, for the error.
            by: Tokens to subtract, below 0 to add.
            what: All tokens that were subtracted, for the error: "2 special tokens".

        Raises:
            BadInput: The minimum is below one token.
        """
        less, low = self.less + by, self.low - by
        if self.law != "uniform" and self.low == 1:
            low = 1
        if low < 1:
            raise BadInput(
                flag,
                f"{self.low + self.less} leaves no token after {what}",
                f"give at least {less + 1}",
            )
        listed = tuple(length - by for length in self.listed)
        return replace(self, low=low, high=self.high - by, listed=listed, less=less)._drawable(flag)

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw `count` lengths, int64, shape (count,). The first k do not depend on the count."""
        if self.listed:
            return np.resize(np.array(self.listed, dtype=np.int64), count)
        if self.law == "uniform":
            return generator.integers(self.low, self.high, size=count, endpoint=True)
        parts, missing = [np.empty(0, dtype=np.int64)], count
        while missing:
            law = self._normal()
            drawn = generator.normal(law.mean, law.stdev, min(missing, DRAW_AT_ONCE))
            if self.law == "lognormal":
                np.exp(drawn, out=drawn)
            drawn = np.rint(drawn) - self.less
            if self.law == CLIPPED:
                drawn = np.clip(drawn, self.low, self.high)
            parts.append(drawn[(self.low <= drawn) & (drawn <= self.high)].astype(np.int64))
            missing -= len(parts[-1])
        return np.concatenate(parts)

    @property
    def rule(self) -> str:
        """A short description for the result."""
        if self.listed:
            numbers = ",".join(str(length + self.less) for length in self.listed)
            return (
                f"{len(self.listed)} listed, sha256 {hashlib.sha256(numbers.encode()).hexdigest()}"
            )
        return "uniform" if self.law == "uniform" else f"{self.law}:{self.mean:g}:{self.stdev:g}"

    @classmethod
    def _by_law(cls, flag: str, text: str, law: str, parts: list[str]) -> "Lengths":
        try:
            mean, stdev = (float(part) for part in parts[:2])
            low, high = _numbers(flag, parts[2:]) or ([] if law == CLIPPED else [1, MAX_TOKENS])
        except ValueError as error:
            bounded = f"{law}:MEAN:STDEV:MIN:MAX"
            remedy = f"write {bounded if law == CLIPPED else f'{law}:MEAN:STDEV or {bounded}'}"
            raise BadInput(flag, f"invalid distribution of lengths {text!r}", remedy) from error
        if not (1 <= mean <= MAX_TOKENS and 0 < stdev <= MAX_TOKENS):
            problem = f"{text!r} has a mean or deviation out of range"
            raise BadInput(
                flag,
                problem,
                f"give a mean from 1 and a deviation above 0, up to {MAX_TOKENS:,} tokens",
            )
        if low > high:
            raise BadInput(
                flag, f"{text!r} has no length from {low} to {high}", "write MIN before MAX"
            )
        return cls(low, high, law, mean, stdev)._drawable(flag)

    @classmethod
    def _of_file(cls, flag: str, path: Path) -> "Lengths":
        remedy = "give a file of whole numbers, separated by white space"
        try:
            words = path.read_text(encoding="ascii").split()
        except OSError as error:
            raise BadInput(flag, f"{path}: {error.strerror}", remedy) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                flag, f"{path} contains text that is not a whole number", remedy
            ) from error
        if not words:
            raise BadInput(flag, f"{path} is empty", remedy)
        try:
            return cls._of_list(flag, words)
        except BadInput as error:
            raise BadInput((flag, str(path)), error.texts[0], remedy) from error

    @classmethod
    def _of_list(cls, flag: str, words: list[str]) -> "Lengths":
        listed = _numbers(flag, words)
        return cls(min(listed), max(listed), listed=tuple(listed))

    def _normal(self) -> "NormalDist":
        """Return the normal distribution of the length, or of its logarithm."""
        from statistics import NormalDist  # not before: it is slow to import

        if self.law != "lognormal":
            return NormalDist(self.mean, self.stdev)
        variance = math.log1p((self.stdev / self.mean) ** 2)
        return NormalDist(math.log(self.mean) - variance / 2, math.sqrt(variance))

    def _drawable(self, flag: str) -> "Lengths":
        """Return itself, after a check that drawing within the bounds ends."""
        if self.law not in ("uniform", CLIPPED):
            ends = [self.low + self.less - 0.5, self.high + self.less + 0.5]
            below, within = (
                self._normal().cdf(math.log(end) if self.law == "lognormal" else end)
                for end in ends
            )
            if within - below < MIN_SHARE:
                problem = (
                    f"{self.rule} draws almost no length from {self.low + self.less} to "
                    f"{self.high + self.less}"
                )
                raise BadInput(flag, problem, "choose MIN and MAX around the mean")
        return self


def plain_length(flag: str, value: int | str, rule: str) -> int:
    """Parse a length that must be a single number of tokens, for rules without ranges and
    distributions.

    Raises:
        BadInput: It is not a whole number from 1 to MAX_TOKENS.
    """
    if not WHOLE.fullmatch(str(value)):
        raise BadInput(
            flag, f"{value} is not a single number, as {rule} needs", "write a number of tokens"
        )
    return Lengths.around(flag, int(value)).low


def _numbers(flag: str, words: list[str]) -> list[int]:
    for number, word in enumerate(words, 1):
        if not word.strip() and len(words) > 1:
            raise BadInput(flag, f"number {number} of {len(words)} is missing", FORMS)
        if not WHOLE.fullmatch(word):
            shown = repr(word) if len(word) <= MAX_SHOWN else f"{word[:MAX_SHOWN]!r}..."
            raise BadInput(flag, f"invalid length {shown}", FORMS)
        if int(word) < 1:
            raise BadInput(flag, f"{word.strip()} leaves no token", "give at least 1")
        _require_at_most(flag, int(word))
    return [int(word) for word in words]


def _require_at_most(flag: str, tokens: int) -> None:
    if tokens > MAX_TOKENS:
        raise BadInput(
            flag,
            f"{tokens} tokens are more than any model supports",
            f"give at most {MAX_TOKENS:,}",
        )

"""Random prompts as `vllm bench serve` and guidellm make them.

`ConsecutiveIds` are those of `vllm bench serve`: each is a range of consecutive ids of the
vocabulary. The ids are decoded, the text is encoded again and cut to the length, and the rest is
decoded: that is the prompt. It becomes shorter where neighboring tokens merge. `Guidellm05Random`
cuts sentences from Faker to a number of tokens.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.data import RANGE_RATIO, parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets import rules
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths, plain_length
from loadgen.workload.missed_length import warn_of_miss
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

RULE = "guidellm-0.5"
CHARACTERS_PER_TOKEN = 5 * 1.5  # the usual number with a margin
BLOCK_TOKENS = 1 << 18  # tokens of the prompts made at a time


class RandomNumbers(NamedTuple):
    """The random numbers of a rule; arrays have a number for each prompt.

    Attributes:
        prefix: The ids of the shared prefix.
        inputs: The number of ids of each prompt without its prefix.
        outputs: Maximum tokens of each answer.
        offsets: The offset of each range in the vocabulary, without the number of the prompt.
    """

    prefix: list[int]
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConsecutiveIds(ABC):
    """Prompt i is the shared prefix, then the ids from offset + i on, modulo the vocabulary.

    Attributes:
        RULE: The name of the rule.
        CUTS_PREFIX: Whether a text is cut to prefix and length together, and has its real number of
            tokens; else it is cut to the length alone, and has the requested number.
        tokenizer: Decodes and encodes; ids are from its vocabulary without added tokens.
        prefix_tokens: Ids of the shared prefix, 0 for none.
        inputs: Minimum and maximum number of ids of a prompt without its prefix and special tokens.
        outputs: Minimum and maximum of the tokens of an answer.
        seed: The seed of everything.
    """

    RULE: ClassVar[str]
    CUTS_PREFIX: ClassVar[bool]

    tokenizer: Tokenizer
    prefix_tokens: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, the `--random-*` fields and the seed of the
        prompts.

        Raises:
            BadInput: A length or ratio leaves no token, or the tokenizer cannot be loaded.
        """
        input_ratio, output_ratio = parse_ratios(settings.random_range_ratio)
        inputs = plain_length(INPUT_LEN, settings.random_input_len, cls.RULE)
        outputs = plain_length(setting.random_output_len, settings.random_output_len, cls.RULE)
        tokenizer = tokenizer_of(settings)
        special = tokenizer.special_tokens
        # Refuses lengths below one token.
        Lengths.around(INPUT_LEN, inputs, input_ratio, less=special)
        return cls(
            tokenizer=tokenizer,
            prefix_tokens=settings.random_prefix_len,
            inputs=cls.bounds(inputs - special, input_ratio),
            outputs=cls.bounds(outputs, output_ratio),
            seed=seed_of(settings, "prompts"),
        )

    @staticmethod
    @abstractmethod
    def bounds(mean: int, ratio: float) -> tuple[int, int]:
        """Return the minimum and maximum of lengths with a mean and a relative half width of
        their range.
        """

    @abstractmethod
    def draw(self, count: int) -> RandomNumbers:
        """Draw the random numbers of `count` prompts from one generator of the seed, in the
        order of the rule.
        """

    def prompts(self, count: int) -> Iterator[Prompt]:
        """As `Dataset.prompts`."""
        prefix, inputs, outputs, offsets = self.draw(count)
        total, (low, high) = 0, self.inputs
        block = max(1, BLOCK_TOKENS // (self.prefix_tokens + high))
        for start in range(0, count, block):
            rows = range(start, min(start + block, count))
            lengths = inputs[start : start + block].tolist()
            ranges = [
                prefix
                + ((offsets[row] + row + np.arange(length)) % self.tokenizer.own_size).tolist()
                for row, length in zip(rows, lengths, strict=True)
            ]
            encoded = self.tokenizer.encode_batch(self.tokenizer.decode_batch(ranges))
            more = self.prefix_tokens if self.CUTS_PREFIX else 0
            cut = [ids[: more + length] for ids, length in zip(encoded, lengths, strict=True)]
            texts = self.tokenizer.decode_batch(cut)
            output_tokens = outputs[start : start + block].tolist()
            for row, text, length, ids, output in zip(
                rows, texts, lengths, cut, output_tokens, strict=True
            ):
                tokens = len(ids) if self.CUTS_PREFIX else self.prefix_tokens + length
                total += tokens
                yield Prompt(text, tokens, output, f"random/{self.RULE}/{self.seed}/{row}")
        if count:
            warn_of_miss(total / count, self.prefix_tokens + low, self.prefix_tokens + high)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "random",
            "rule": self.RULE,
            "seed_prompts": self.seed,
            "prefix_tokens": self.prefix_tokens,
            "special_tokens": self.tokenizer.special_tokens,
            "input_tokens": list(self.inputs),
            "output_tokens": list(self.outputs),
            **self.tokenizer.provenance(),
        }


class Vllm011Random(ConsecutiveIds):
    """The rule of `vllm bench serve` 0.11: numpy's PCG64 draws inputs, outputs, offsets, then
    the prefix.
    """

    __slots__ = ()
    RULE: ClassVar[str] = "vllm-0.11"
    CUTS_PREFIX: ClassVar[bool] = True

    @staticmethod
    def bounds(mean: int, ratio: float) -> tuple[int, int]:
        """Return floor and ceiling of mean * (1 -+ ratio), at least 1."""
        return max(math.floor(mean * (1 - ratio)), 1), math.ceil(mean * (1 + ratio))

    def draw(self, count: int) -> RandomNumbers:
        """Draw the prefix last."""
        generator = np.random.default_rng(self.seed)
        size = self.tokenizer.own_size
        inputs = generator.integers(*self.inputs, size=count, endpoint=True)
        outputs = generator.integers(*self.outputs, size=count, endpoint=True)
        offsets = generator.integers(0, size, size=count)
        return RandomNumbers(
            generator.integers(0, size, size=self.prefix_tokens).tolist(), inputs, outputs, offsets
        )


class Vllm09Random(ConsecutiveIds):
    """The rule of `vllm bench serve` 0.9.

    numpy's legacy generator draws the prefix, inputs, outputs, then offsets. A prompt is cut to the
    length without the prefix, and reported with it: with a prefix, its real length is shorter.
    """

    __slots__ = ()
    RULE: ClassVar[str] = "vllm-0.9"
    CUTS_PREFIX: ClassVar[bool] = False

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set like all rules of consecutive ids, with a seed for numpy's legacy
        generator.
        """
        seed = seed_of(settings, "prompts")
        if seed >= 1 << 32:
            raise BadInput(
                setting.seed, f"{seed} is out of range for {cls.RULE}", "give less than 2**32"
            )
        return super().from_settings(settings)

    @staticmethod
    def bounds(mean: int, ratio: float) -> tuple[int, int]:
        """Return mean * (1 -+ ratio), both rounded down; the minimum may be 0."""
        return int(mean * (1 - ratio)), int(mean * (1 + ratio))

    def draw(self, count: int) -> RandomNumbers:
        """Draw the prefix first."""
        draw = np.random.RandomState(self.seed).randint
        size = self.tokenizer.own_size
        prefix = draw(0, size, size=self.prefix_tokens).tolist()
        inputs, outputs = (
            draw(low, high + 1, size=count) for low, high in (self.inputs, self.outputs)
        )
        return RandomNumbers(prefix, inputs, outputs, draw(0, size, size=count))


@dataclass(frozen=True, slots=True)
class Guidellm05Random:
    """Prompt i is "1 i " and sentences, cut to the first `input_tokens` tokens.

    The cut text may have another number of tokens when it is encoded again: that is `input_tokens`
    of its Prompt. Its last token may be white space, which a chat template may trim. Sentences are
    drawn prompt by prompt.

    Attributes:
        tokenizer: Encodes with special tokens, and decodes without them.
        input_tokens: Requested tokens of each prompt.
        output_tokens: Maximum tokens of each answer; the rule makes the server generate all of
            them.
        seed: The seed of Faker.
    """

    tokenizer: Tokenizer
    input_tokens: int
    output_tokens: int
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, the `--random-*` fields and the seed of the
        prompts.

        Raises:
            BadInput: Faker is missing, a prefix or a range is given, or the tokenizer cannot be
                loaded.
        """
        if any(parse_ratios(settings.random_range_ratio)):
            raise BadInput(RANGE_RATIO, f"{RULE} does not support ranges", "leave it out")
        if settings.random_prefix_len:
            raise BadInput(
                setting.random_prefix_len, f"{RULE} does not support a prefix", "leave it out"
            )
        _faker(0)
        return cls(
            tokenizer=tokenizer_of(settings),
            input_tokens=plain_length(INPUT_LEN, settings.random_input_len, RULE),
            output_tokens=plain_length(setting.random_output_len, settings.random_output_len, RULE),
            seed=seed_of(settings, "prompts"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`.

        One at a time is in memory.
        """
        faker = _faker(self.seed)
        total = 0
        for row in range(count):
            ids: list[int] = []
            attempts = 0
            while (
                len(ids) < self.input_tokens
            ):  # each attempt draws a longer text, until it has the tokens
                attempts += 1
                characters = int(self.input_tokens * CHARACTERS_PER_TOKEN * attempts)
                sentences = f"1 {row} {faker.text(max_nb_chars=characters)}"
                (ids,) = self.tokenizer.encode_batch([sentences], special=True)
            (text,) = self.tokenizer.decode_batch([ids[: self.input_tokens]], special=False)
            (tokens,) = self.tokenizer.count([text], special=True)
            total += tokens
            yield Prompt(text, tokens, self.output_tokens, f"random/{RULE}/{self.seed}/{row}")
        if count:
            warn_of_miss(total / count, self.input_tokens, self.input_tokens)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        from importlib.metadata import version

        return {
            "name": "random",
            "rule": RULE,
            "seed_prompts": self.seed,
            "input_tokens": [self.input_tokens, self.input_tokens],
            "output_tokens": [self.output_tokens, self.output_tokens],
            "faker": version("faker"),
            **self.tokenizer.provenance(),
        }


def _faker(seed: int) -> Any:
    rules.require_packages(RULE)
    from faker import Faker

    faker = Faker()
    faker.seed_instance(seed)
    return faker

"""The rule `guidellm-0.5`: synthetic sentences from Faker, cut to a number of tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from loadgen.config import data
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets import rules
from loadgen.workload.datasets.lengths import INPUT_LEN, plain_length
from loadgen.workload.missed_length import warn_of_miss
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

RULE = "guidellm-0.5"
CHARACTERS_PER_TOKEN = 5 * 1.5  # the usual number with a margin


@dataclass(frozen=True, slots=True)
class Guidellm05Random:
    """Prompt i is "1 i " and sentences, cut to the first `input_tokens` tokens.

    The cut text may have another number of tokens when it is encoded again: that is `input_tokens` of its Prompt. Its
    last token may be white space, which a chat template may trim. Sentences are drawn prompt by prompt.

    Attributes:
        tokenizer: Encodes with special tokens, and decodes without them.
        input_tokens: Requested tokens of each prompt.
        output_tokens: Maximum tokens of each answer; the rule makes the server generate all of them.
        seed: The seed of Faker.
    """

    tokenizer: Tokenizer
    input_tokens: int
    output_tokens: int
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, `--random-input-len`, `--random-output-len` and the prompts' seed.

        Raises:
            BadInput: Faker is missing, a prefix or a range is given, or the tokenizer cannot be loaded.
        """
        if any(data.parse_ratios(settings.random_range_ratio)):
            raise BadInput(data.RANGE_RATIO, f"{RULE} does not support ranges", "leave it out")
        if settings.random_prefix_len:
            raise BadInput("--random-prefix-len", f"{RULE} does not support a prefix", "leave it out")
        _faker(0)
        return cls(
            tokenizer=tokenizer_of(settings),
            input_tokens=plain_length(INPUT_LEN, settings.random_input_len, RULE),
            output_tokens=plain_length("--random-output-len", settings.random_output_len, RULE),
            seed=seed_of(settings, "prompts"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. One at a time is in memory."""
        faker, total = _faker(self.seed), 0
        for row in range(count):
            text = self._text(faker, row)
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

    def _text(self, faker: Any, row: int) -> str:
        ids: list[int] = []
        attempts = 0
        while len(ids) < self.input_tokens:  # each attempt draws a longer text, until it has the tokens
            attempts += 1
            characters = int(self.input_tokens * CHARACTERS_PER_TOKEN * attempts)
            (ids,) = self.tokenizer.encode_batch([f"1 {row} {faker.text(max_nb_chars=characters)}"], special=True)
        (text,) = self.tokenizer.decode_batch([ids[: self.input_tokens]], special=False)
        return text


def _faker(seed: int) -> Any:
    rules.require_packages(RULE)
    from faker import Faker

    faker = Faker()
    faker.seed_instance(seed)
    return faker

"""`RandomDataset`: prompts of random words, exact to the token.

Filler prompts are made of random words, too: for warm-ups of a data set that has no prompts beyond
those of a run.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from loadgen.config.data import parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths
from loadgen.workload.datasets.prefix_groups import PrefixGroups
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.exact_text import Count
from loadgen.workload.tokenizer.random_text import (
    BLOCK_WORDS,
    INPUT_LENGTHS,
    ORDER,
    OUTPUT_LENGTHS,
    RandomText,
    generator,
)
from loadgen.workload.tokenizer.tokenizer import Tokenizer

FURTHER_ROWS = 1024  # minimum rows made at a time beyond those of a run
# Rows of filler prompts; those of a run start at 0, prefixes go down from the last row.
FIRST_ROW = 2**63


class RandomDataset(Struct, frozen=True):
    """Prompts of random words: the prefix of a group, then `inputs` tokens of its own.

    A prompt is the text of a row r. Its words, its length and that of its answer are functions of
    (`seed_prompts`, r); only listed lengths depend on the order of sending. `prompts(n)` sends rows
    0 to n-1 in an order that `seed_order` draws for this n, so its first k prompts are not those of
    `prompts(k)`. Unshuffled, it sends group by group. With 4096 words, two rows begin with the same
    4 words about once in 2**48.

    Attributes:
        drawing: Draws the words, with tokenizer and seed of the prompts.
        inputs: Tokens of each prompt without prefix and special tokens.
        outputs: Maximum tokens of each answer.
        seed_order: The seed of the order.
        prefixes: The prefixes of the prompts.
        name: The name of the data set.
        input_flag: The flag of `inputs`, for errors.
        shuffled: Whether the order is drawn.
        template_tokens: Tokens that the server counts beyond those of each prompt, if known.
        measure: Counts a text like the server, if lengths are the server's and tokens of words and
            template join.
    """

    drawing: RandomText
    inputs: Lengths
    outputs: Lengths
    seed_order: int
    prefixes: PrefixGroups = PrefixGroups()
    name: str = "random"
    input_flag: str = INPUT_LEN
    shuffled: bool = True
    template_tokens: int | None = None
    measure: Count | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, the `--random-*` fields (as in `vllm bench
        serve`) and the seeds.

        A prompt has `random_prefix_len` plus `random_input_len` tokens, including the special
        tokens of the tokenizer.

        Raises:
            BadInput: A length or ratio is out of range, or the tokenizer cannot be loaded or has
                too few words.
        """
        input_ratio, output_ratio = parse_ratios(settings.random_range_ratio)
        outputs = Lengths.parse(
            setting.random_output_len, settings.random_output_len, output_ratio, clamped=True
        )
        drawing = RandomText.of(settings)
        special = drawing.tokenizer.special_tokens
        inputs = Lengths.parse(INPUT_LEN, settings.random_input_len, input_ratio, less=special)
        return cls(
            drawing,
            inputs,
            outputs,
            seed_of(settings, "order"),
            PrefixGroups.from_settings(settings),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the words."""
        return self.drawing.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the same in every call.

        Memory does not grow with their lengths.
        """
        return (prompt for _, prompt in self.numbered(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of rows `count`, `count` + 1 and so on, endlessly."""
        return (prompt for _, prompt in self.numbered_beyond(count))

    def prefix_prompts(self) -> Iterator[Prompt]:
        """Yield each prefix alone; nothing if there are none."""
        special = self.tokenizer.special_tokens
        for number, prefix in enumerate(self.prefixes.draw(self.drawing)):
            if prefix.tokens:
                tokens = prefix.tokens + special
                server_tokens = (
                    None if self.template_tokens is None else tokens + self.template_tokens
                )
                source = f"{self.name}/{self.drawing.seed}/prefix/{number}"
                yield Prompt(prefix.text, tokens, 1, source, server_tokens=server_tokens)

    def numbered(self, count: int) -> Iterator[tuple[int, Prompt]]:
        """Yield the rows and prompts of `prompts(count)`."""
        if self.shuffled:
            order = generator(self.seed_order, ORDER).permutation(count)
        else:
            order = np.argsort(self.prefixes.numbers_of(np.arange(count)), kind="stable")
        return self._generate(order, range(count))

    def numbered_beyond(self, count: int) -> Iterator[tuple[int, Prompt]]:
        """Yield the rows and prompts of `beyond(count)`."""
        while True:
            # Each call draws lengths from the first row on.
            rows = np.arange(count, count + max(count, FURTHER_ROWS))
            yield from self._generate(rows, rows)
            count += len(rows)

    def _generate(
        self, order: NDArray[np.int64], positions: Sequence[int] | NDArray[np.int64]
    ) -> Iterator[tuple[int, Prompt]]:
        inputs, outputs = self._lengths(order, positions)
        drawn, groups = self.prefixes.draw(self.drawing), self.prefixes.numbers_of(order)
        before = [drawn[group] for group in groups]
        special, template = self.tokenizer.special_tokens, self.template_tokens
        words = inputs + np.array([prefix.tokens for prefix in before], dtype=np.int64)
        full = np.flatnonzero(np.diff(np.cumsum(words) // BLOCK_WORDS)) + 1
        for start, end in pairwise([0, *full.tolist(), len(words)]):
            if start == end:
                continue
            block = slice(start, end)
            rows, lengths = order[block], inputs[block].tolist()
            texts = self.drawing.texts(
                rows.astype(np.uint64),
                lengths,
                before[block],
                measure=self.measure,
                added_tokens=special + (template or 0),
            )
            around = [prefix.tokens + special for prefix in before[block]]
            prompts = zip(
                rows.tolist(),
                groups[block],
                texts,
                around,
                lengths,
                outputs[block].tolist(),
                strict=True,
            )
            for row, group, text, more, length, output in prompts:
                planned = more + length
                source = f"{self.name}/{self.drawing.seed}/" + (
                    f"{group}/{row}" if self.prefixes.buckets else f"{row}"
                )
                tokens = self.tokenizer.count([text], special=True)[0] if self.measure else planned
                server_tokens = None if template is None else planned + template
                yield row, Prompt(text, tokens, output, source, server_tokens=server_tokens)

    def probes(self) -> list[str]:
        """As `SizedToServer.probes`."""
        return self.drawing.probes()

    def with_template_tokens(
        self, template_counts: Sequence[int], *, subtract: bool, measure: Count | None
    ) -> Self:
        """As `SizedToServer.with_template_tokens`.

        Raises:
            BadInput: The shortest prompt would be empty, or tokens do not add up and nothing counts
                them.
        """
        adds_up = self.drawing.adds_up(template_counts)
        if not subtract:
            return replace(self, template_tokens=template_counts[0]) if adds_up else self
        if not adds_up and measure is None:
            problem = (
                f"{self.tokenizer.name} joins words into tokens, so the overhead of a "
                "template is not constant"
            )
            raise BadInput(
                setting.input_len_counts,
                problem,
                "give the folder of a tokenizer with its chat template",
            )
        added = f"{template_counts[-1] + self.tokenizer.special_tokens} of the chat template"
        inputs = self.inputs.shorter(self.input_flag, template_counts[-1], added)
        return replace(
            self,
            inputs=inputs,
            template_tokens=template_counts[-1],
            measure=None if adds_up else measure,
        )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.name,
            "rule": "exact words",
            "seed_prompts": self.drawing.seed,
            "seed_order": self.seed_order,
            **self.prefixes.provenance(),
            "special_tokens": self.tokenizer.special_tokens,
            "input_tokens": [self.inputs.low, self.inputs.high],
            "input_lengths": self.inputs.rule,
            "output_tokens": [self.outputs.low, self.outputs.high],
            "output_lengths": self.outputs.rule,
            "words": len(self.drawing.words.items),
            **self.tokenizer.provenance(),
        }

    def _lengths(
        self, order: NDArray[np.int64], positions: Sequence[int] | NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the tokens of each prompt and its answer: by its row, or for listed lengths by
        its position.
        """
        count = int(order.max(initial=-1)) + 1
        inputs = self.inputs.draw(generator(self.drawing.seed, INPUT_LENGTHS), count)
        outputs = self.outputs.draw(generator(self.drawing.seed, OUTPUT_LENGTHS), count)
        at = np.asarray(positions)
        return inputs[at if self.inputs.listed else order], outputs[
            at if self.outputs.listed else order
        ]


def filler_prompts(settings: RunSettings, lengths: Sequence[tuple[int, int]]) -> Iterator[Prompt]:
    """Yield a prompt of random words for each of the lengths.

    Args:
        settings: The settings, with tokenizer and seed.
        lengths: Tokens of each prompt and of its answer. Without a tokenizer, a word counts as a
            token.
    """
    seed = seed_of(settings, "prompts")
    try:
        drawing = RandomText.of(settings)
    except BadInput:
        choices = random.Random(seed).choices
        texts = [" ".join(choices(_words(), k=max(1, tokens))) for tokens, _ in lengths]
    else:
        rows = np.arange(len(lengths), dtype=np.uint64) + np.uint64(FIRST_ROW)
        texts = drawing.texts(
            rows, [max(1, tokens - drawing.tokenizer.special_tokens) for tokens, _ in lengths]
        )
    for number, ((tokens, output_tokens), text) in enumerate(zip(lengths, texts, strict=True)):
        yield Prompt(text, tokens, output_tokens, f"stand-in/{seed}/{number}")


@cache
def _words() -> list[str]:
    text = Path(__file__).with_name("prose.txt").read_text(encoding="utf-8")
    return sorted({word for word in text.split() if word.isalpha()})

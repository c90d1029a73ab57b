"""`TextSlices`: pieces of a text file from random places, as `txt-slices` of `vllm bench serve`."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths
from loadgen.workload.files import cache
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import TOKENIZER, Tokenizer, tokenizer_of

REMEDY = "give a text file in UTF-8"
BATCH = 256  # prompts made at a time


@dataclass(frozen=True, slots=True)
class TextSlices:
    """Prompts of `length` tokens of a text in a row, each from a place of its own; the text begins
    again after its end.

    The places are those that vLLM draws from the same seed, and so is each text. A tokenizer may
    count another number of tokens in a piece than it was cut to: a prompt says what it counts.

    Attributes:
        tokenizer: Cuts the text.
        token_ids: The tokens of the whole text, without special tokens.
        path: The file of the text.
        length: Tokens of each piece.
        output_tokens: Maximum tokens of each answer.
        seed: The seed of the places.
    """

    tokenizer: Tokenizer
    token_ids: list[int] = field(repr=False)
    path: Path
    length: int
    output_tokens: int
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--random-input-len`, `--random-output-len`,
        `--tokenizer` and the seed.

        Raises:
            BadInput: The file has no text in UTF-8, a length is no single number, or the tokenizer
                cannot be loaded or does not have the words of the text.
        """
        path, tokenizer = dataset_path(settings, REMEDY), tokenizer_of(settings)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(DATASET_PATH, f"{path}: {error}", REMEDY) from error
        if not text.strip():
            raise BadInput(DATASET_PATH, f"{path} is empty", REMEDY)
        (token_ids,) = tokenizer.encode_batch([text])
        if not _spells(tokenizer, token_ids, text):
            problem = f"{tokenizer.name} does not have the words of {path.name}"
            raise BadInput(TOKENIZER, problem, "give the tokenizer of the model")
        return cls(
            tokenizer,
            token_ids,
            path,
            _single(INPUT_LEN, settings.random_input_len),
            _single(setting.random_output_len, settings.random_output_len),
            seed_of(settings, "prompts"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`."""
        return islice(self._endless(), count)

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts after `prompts(count)`, endlessly."""
        return islice(self._endless(), count, None)

    def _endless(self) -> Iterator[Prompt]:
        draw, size = random.Random(self.seed), len(self.token_ids)
        text_ids = self.token_ids * (1 + -(-self.length // size))
        while True:
            starts = [draw.randint(0, size - 1) for _ in range(BATCH)]
            pieces = [text_ids[start : start + self.length] for start in starts]
            texts = self.tokenizer.decode_batch(pieces)
            counts = self.tokenizer.count(texts, special=True)
            for start, text, tokens in zip(starts, texts, counts, strict=True):
                yield Prompt(text, tokens, self.output_tokens, f"{self.path.name}/{start}")

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "txt-slices",
            "rule": "pieces from random places of a text, as `vllm bench serve` makes them",
            "seed_prompts": self.seed,
            "input_tokens": self.length,
            "output_tokens": self.output_tokens,
            "file": self.path.name,
            "file_sha256": cache.file_sha256(self.path),
            "file_tokens": len(self.token_ids),
            **self.tokenizer.provenance(),
        }


def _spells(tokenizer: Tokenizer, token_ids: list[int], text: str) -> bool:
    """Return whether tokens are text again, but for white space and case."""
    (spelled,) = tokenizer.decode_batch([token_ids])
    return "".join(spelled.split()).casefold() == "".join(text.split()).casefold()


def _single(flag: str, value: int | str) -> int:
    lengths = Lengths.parse(flag, value)
    if lengths.listed or lengths.low != lengths.high:
        raise BadInput(flag, f"{value}: pieces of a text have one length", "give one number")
    return lengths.low

"""`ProseDataset`: prompts of English prose, built-in or from a text file, cut to the token."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.files import cache
from loadgen.workload.files.mapped_file import DATASET_PATH, checked_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.exact_text import Count
from loadgen.workload.tokenizer.tokenizer import TOKENIZER, Tokenizer, tokenizer_file, tokenizer_of

REMEDY = "give a text file with a sentence on each line, or leave it out for the built-in text"
BATCH = 256  # prompts made at a time
SPARE_TOKENS = 64  # drawn beyond a length, to have text to cut
REPAIRS = 16  # maximum words left out to make a cut possible
LINES_AT_ONCE = 32  # lines drawn at a time
PROBES = 64  # lines to which a chat template is tried
FIRST = "a"  # a word before a line, because tokenizers treat the start of a text specially
LINES, ORDER = range(2)  # separate random streams of a seed


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text, as it follows another line.

    Attributes:
        text: A space and the text.
        ends: The character offsets of the ends of its tokens.
    """

    text: str
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class ProseDataset:
    """Prompts of lines: a shared prefix from the start of the text, then random lines.

    Prefix and prompt have exact lengths in tokens. A prompt is a function of (`seed_prompts`, row)
    alone; `seed_order` draws the order of the rows. Unlike random words, a model continues this
    text sensibly, and speculative decoding works on it.

    Attributes:
        tokenizer: Counts the tokens.
        lines: The lines of the text.
        path: The file of the text.
        settings: The settings of the run: tokens of prefix, prompts and answers, and the seeds.
        template_tokens: Tokens of the chat template that are part of the length of a prompt.
        measure: Counts a text with the template; None: nothing does.
    """

    tokenizer: Tokenizer
    lines: Sequence[Line] = field(repr=False)
    path: Path
    settings: RunSettings
    template_tokens: int = 0
    measure: Count | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--sonnet-*-len`, `--dataset-path`, `--tokenizer` and the seeds.

        Raises:
            BadInput: The text or the tokenizer cannot be used, or the prefix is too long for the
                prompt.
        """
        tokenizer = tokenizer_of(settings)
        room = settings.sonnet_input_len - settings.sonnet_prefix_len - tokenizer.special_tokens
        if room < 2:
            problem = (
                f"{settings.sonnet_input_len} leaves no room after a prefix of "
                f"{settings.sonnet_prefix_len} tokens"
            )
            raise BadInput(
                setting.sonnet_input_len, problem, f"raise it, or lower {setting.sonnet_prefix_len}"
            )
        path = _path(settings)
        return cls(tokenizer, _lines(path, tokenizer), path, settings)

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return the file of the text and the tokenizer's file; None if it has none, or lengths
        are the server's.
        """
        tokenizer = tokenizer_file(settings)
        return (
            None
            if tokenizer is None or settings.input_len_counts == "server"
            else [_path(settings), tokenizer]
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """As `Dataset.prompts`.

        One batch at a time is in memory.

        Raises:
            BadInput: The tokenizer joins text into tokens, so an exact length is not possible.
        """
        return self._generate(
            iter(
                np.random.default_rng([seed_of(self.settings, "order"), ORDER])
                .permutation(count)
                .tolist()
            )
        )

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of rows `count`, `count` + 1 and so on, endlessly."""
        return self._generate(itertools.count(count))

    def _generate(self, order: Iterator[int]) -> Iterator[Prompt]:
        settings, seed = self.settings, seed_of(self.settings, "prompts")
        plain = settings.sonnet_input_len - self.template_tokens
        text_tokens = plain - self.tokenizer.special_tokens
        prefix = ""
        if prefix_tokens := settings.sonnet_prefix_len:
            lines = _join_lines(itertools.cycle(self.lines), prefix_tokens)
            (prefix,) = cut_to_tokens([lines], prefix_tokens, self.tokenizer)
        while rows := list(islice(order, BATCH)):
            drawn = [
                _join_lines(
                    self._drawn(seed, row), text_tokens - settings.sonnet_prefix_len, prefix
                )
                for row in rows
            ]
            texts = cut_to_tokens(drawn, text_tokens, self.tokenizer)
            tokens = [plain] * len(rows)
            if self.measure is not None:
                texts = [
                    self._fitted(text, cut, text_tokens)
                    for (text, _), cut in zip(drawn, texts, strict=True)
                ]
                tokens = self.tokenizer.count(texts, special=True)
            for row, text, count in zip(rows, texts, tokens, strict=True):
                yield Prompt(text, count, settings.sonnet_output_len, f"prose/{seed}/{row}")

    def probes(self) -> list[str]:
        """As `SizedToServer.probes`."""
        return [line.text.strip() for line in self.lines[:PROBES]]

    def with_template_tokens(
        self, template_counts: Sequence[int], *, subtract: bool, measure: Count | None
    ) -> Self:
        """As `SizedToServer.with_template_tokens`.

        Raises:
            BadInput: There is no room after the prefix, or the template adds a varying number and
                nothing counts them.
        """
        if not subtract:
            return self
        most = template_counts[-1]
        length = self.settings.sonnet_input_len
        prefix = self.settings.sonnet_prefix_len
        if length - prefix - self.tokenizer.special_tokens - most < 2:
            problem = f"{length} leaves no room after {prefix} tokens of the prefix and {most} "
            raise BadInput(
                setting.sonnet_input_len,
                f"{problem}of the chat template",
                "raise it, or lower the prefix",
            )
        if measure is None and len(template_counts) > 1:
            problem = "the chat template adds a varying number of tokens"
            raise BadInput(
                setting.input_len_counts,
                problem,
                "give the folder of a tokenizer with its chat template",
            )
        return replace(self, template_tokens=most, measure=measure)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "prose",
            "rule": "lines, cut to the token",
            "seed_prompts": seed_of(self.settings, "prompts"),
            "seed_order": seed_of(self.settings, "order"),
            "prefix_tokens": self.settings.sonnet_prefix_len,
            "input_tokens": self.settings.sonnet_input_len,
            "special_tokens": self.tokenizer.special_tokens,
            "output_tokens": self.settings.sonnet_output_len,
            "file": self.path.name,
            "file_sha256": cache.file_sha256(self.path),
            "lines": len(self.lines),
            **self.tokenizer.provenance(),
        }

    def _fitted(self, text: str, cut: str, tokens: int) -> str:
        """Return a text that was cut to `tokens`, cut anew until it has the requested tokens with
        the template.

        Raises:
            BadInput: That is not possible.
        """
        assert self.measure is not None
        length = self.settings.sonnet_input_len
        for _ in range(REPAIRS):
            (more,) = (count - length for count in self.measure([cut]))
            if not more:
                return cut
            tokens -= more
            cut = _repaired(text, tokens, self.tokenizer)
        raise _uncuttable(self.tokenizer, length)

    def _drawn(self, seed: int, row: int) -> Iterator[Line]:
        draw = np.random.default_rng([seed, LINES, row])
        while True:
            yield from (
                self.lines[number]
                for number in draw.integers(0, len(self.lines), LINES_AT_ONCE).tolist()
            )


def _join_lines(lines: Iterator[Line], tokens: int, prefix: str = "") -> tuple[str, int]:
    """Join lines after a prefix until they exceed the tokens; returns the text, and the offset
    to cut it at.
    """
    parts, length, cut_at, held = [prefix], len(prefix), 0, 0
    while held < tokens + SPARE_TOKENS:
        line = next(lines)
        text = line.text if length else line.text[1:]
        if held < tokens <= held + len(line.ends):
            cut_at = length + line.ends[tokens - held - 1] - (len(line.text) - len(text))
        parts.append(text)
        length, held = length + len(text), held + len(line.ends)
    return "".join(parts), cut_at


def cut_to_tokens(texts: Sequence[tuple[str, int]], tokens: int, tokenizer: Tokenizer) -> list[str]:
    """Cut each text to an exact number of tokens, without white space at its end.

    Args:
        texts: Longer texts, each with the probable offset of the cut.
        tokens: The number of tokens, without special tokens.
        tokenizer: Counts the tokens.

    Raises:
        BadInput: The tokenizer joins text into tokens, so an exact length is not possible.
    """
    cut_texts = [text[:cut_at] for text, cut_at in texts]
    for at, count in enumerate(tokenizer.count(cut_texts)):
        if count != tokens or cut_texts[at][-1:].isspace():
            cut_texts[at] = _repaired(texts[at][0], tokens, tokenizer)
    return cut_texts


def _repaired(text: str, tokens: int, tokenizer: Tokenizer) -> str:
    """Cut a text at the end of a token, after leaving out words before it as needed."""
    for _ in range(REPAIRS):
        (ends,) = tokenizer.ends([text])
        if len(ends) < tokens:
            break
        short = text[: ends[tokens - 1]]
        if tokenizer.count([short]) == [tokens] and not short[-1:].isspace():
            return short
        before, space, _ = short.rstrip().rpartition(" ")
        text = before + space + text[len(short) :].partition(" ")[2]
    raise _uncuttable(tokenizer, tokens)


def _uncuttable(tokenizer: Tokenizer, tokens: int) -> BadInput:
    problem = f"{tokenizer.name} cannot cut a text to {tokens} tokens"
    return BadInput(TOKENIZER, problem, "use another tokenizer or length")


def _path(settings: RunSettings) -> Path:
    if settings.dataset_path is not None:
        return checked_path(DATASET_PATH, settings.dataset_path)
    return Path(__file__).with_name("prose.txt")


def _lines(path: Path, tokenizer: Tokenizer) -> list[Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(DATASET_PATH, f"{path} cannot be read ({error.strerror})", REMEDY) from error
    except UnicodeDecodeError as error:
        raise BadInput(DATASET_PATH, f"{path} is not UTF-8", REMEDY) from error
    if "\0" in text:
        raise BadInput(DATASET_PATH, f"{path} is not a text: it contains NUL bytes", REMEDY)
    stripped = [line.strip() for line in text.splitlines() if line.strip()]
    first = tokenizer.ends([FIRST])[0]
    ends = [
        word_ends[len(first) :]
        for word_ends in tokenizer.ends([f"{FIRST} {line}" for line in stripped])
    ]
    lines = [
        Line(f" {line}", [end - len(FIRST) for end in word_ends])
        for line, word_ends in zip(stripped, ends, strict=True)
        if word_ends
    ]
    if not lines:
        raise BadInput(DATASET_PATH, f"{path} contains no text", REMEDY)
    return lines

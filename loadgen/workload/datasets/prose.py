"""Prose: plain English of our own, or of a text file, cut to the token."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.files import file_hash
from loadgen.workload.files.mapped_file import FIELD, named
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import Tokenizer

REMEDY = "give a text of a sentence a line, or leave it out for the built-in one"
BATCH = 256  # prompts made at a time
SPARE_TOKENS = 64  # drawn beyond a length, so that there is something to cut
REPAIRS = 16  # words left out to make a cut possible, at most
DRAWN = 32  # lines drawn at a time
FIRST = "a"  # a word to stand before a line, because tokenizers treat the start of a text in their own ways
LINES, ORDER = range(2)  # what a seed draws, each from a stream of its own


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text, as it follows another.

    Attributes:
        text: A space, and what it says.
        ends: At which character of it each of its tokens ends.
    """

    text: str
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class ProseDataset:
    """Prompts of lines: as many from the start of a text as make a prefix that all share, then lines drawn by chance.

    Prefix and prompt are cut to exactly the tokens asked for. A prompt is a function of (`seed_prompts`, row) alone;
    `seed_order` draws the order of the rows. Other than random words this is text that a model goes on with sensibly,
    and that speculative decoding is good at.

    Attributes:
        tokenizer: What counts the tokens.
        lines: Of the text.
        path: Where they come from.
        prefix_tokens: Tokens that every prompt begins with, 0 for none.
        input_tokens: Tokens of each prompt, special ones included.
        output_tokens: Tokens wanted of each answer.
        seed_prompts: Draws the lines.
        seed_order: Draws the order.
    """

    tokenizer: Tokenizer
    lines: Sequence[Line] = field(repr=False)
    path: Path
    prefix_tokens: int
    input_tokens: int
    output_tokens: int
    seed_prompts: int
    seed_order: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--sonnet-*-len`, `--dataset-path`, `--tokenizer` and the seeds.

        Raises:
            BadInput: The text or the tokenizer cannot be used, or the prefix leaves no room in the prompt.
        """
        tokenizer = tokenizers.of_settings(settings)
        own = settings.sonnet_input_len - settings.sonnet_prefix_len - tokenizer.special_tokens
        if own < 2:
            problem = (
                f"{settings.sonnet_input_len} leaves no room beside a prefix of {settings.sonnet_prefix_len} tokens"
            )
            raise BadInput("--sonnet-input-len", problem, "ask for more, or lower --sonnet-prefix-len")
        path = _path(settings)
        return cls(
            tokenizer=tokenizer,
            lines=_lines(path, tokenizer),
            path=path,
            prefix_tokens=settings.sonnet_prefix_len,
            input_tokens=settings.sonnet_input_len,
            output_tokens=settings.sonnet_output_len,
            seed_prompts=seed_of(settings, "prompts"),
            seed_order=seed_of(settings, "order"),
        )

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """The text and the tokenizer's file, None where it has none."""
        tokenizer = tokenizers.file_of(settings)
        return None if tokenizer is None else [_path(settings), tokenizer]

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; a batch at a time is in memory.

        Raises:
            BadInput: The tokenizer joins what the lines are made of, so that a length cannot be met.
        """
        return self._made(iter(np.random.default_rng([self.seed_order, ORDER]).permutation(count).tolist()))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield rows `count`, `count` + 1 and so on, without an end."""
        return self._made(itertools.count(count))

    def _made(self, order: Iterator[int]) -> Iterator[Prompt]:
        wanted = self.input_tokens - self.tokenizer.special_tokens
        prefix = self._prefix()
        while rows := list(islice(order, BATCH)):
            drawn = [_joined(self._drawn(row), wanted - self.prefix_tokens, prefix) for row in rows]
            for row, text in zip(rows, cut(drawn, wanted, self.tokenizer), strict=True):
                yield Prompt(text, self.input_tokens, self.output_tokens, f"prose/{self.seed_prompts}/{row}")

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seeds and lengths in tokens, and the hashes of text and tokenizer."""
        return {
            "name": "prose",
            "rule": "lines, cut to the token",
            "seed_prompts": self.seed_prompts,
            "seed_order": self.seed_order,
            "prefix_tokens": self.prefix_tokens,
            "input_tokens": self.input_tokens,
            "special_tokens": self.tokenizer.special_tokens,
            "output_tokens": self.output_tokens,
            "file": self.path.name,
            "file_sha256": file_hash.sha256(self.path),
            "lines": len(self.lines),
            **self.tokenizer.provenance(),
        }

    def _prefix(self) -> str:
        """The shared beginning."""
        if not self.prefix_tokens:
            return ""
        return cut([_joined(cycle(self.lines), self.prefix_tokens)], self.prefix_tokens, self.tokenizer)[0]

    def _drawn(self, row: int) -> Iterator[Line]:
        """Draw the lines of a row, without an end."""
        draw = np.random.default_rng([self.seed_prompts, LINES, row])
        while True:
            yield from (self.lines[number] for number in draw.integers(0, len(self.lines), DRAWN).tolist())


def _joined(lines: Iterator[Line], tokens: int, prefix: str = "") -> tuple[str, int]:
    """Put lines after a prefix until they have more than so many tokens; returns where they are to be cut, as well."""
    found, length, place, held = [prefix], len(prefix), 0, 0
    while held < tokens + SPARE_TOKENS:
        line = next(lines)
        text = line.text if length else line.text[1:]
        if held < tokens <= held + len(line.ends):
            place = length + line.ends[tokens - held - 1] - (len(line.text) - len(text))
        found.append(text)
        length, held = length + len(text), held + len(line.ends)
    return "".join(found), place


def cut(texts: Sequence[tuple[str, int]], tokens: int, tokenizer: Tokenizer) -> list[str]:
    """Cut each text where what is left of it has exactly so many tokens and does not end in white space.

    Args:
        texts: Each of more tokens than that, with the place where it is probably to be cut.
        tokens: Without special ones.
        tokenizer: What counts them.

    Raises:
        BadInput: It joins what stands there into tokens, so that the length cannot be met.
    """
    found = [text[:place] for text, place in texts]
    for at, count in enumerate(tokenizer.count(found)):
        if count != tokens or found[at][-1:].isspace():
            found[at] = _repaired(texts[at][0], tokens, tokenizer)
    return found


def _repaired(text: str, tokens: int, tokenizer: Tokenizer) -> str:
    """Cut a text where the token ends, after leaving out as many words before that place as it takes."""
    for _ in range(REPAIRS):
        (ends,) = tokenizer.ends([text])
        if len(ends) < tokens:
            break
        short = text[: ends[tokens - 1]]
        if tokenizer.count([short]) == [tokens] and not short[-1:].isspace():
            return short
        before, space, _ = short.rstrip().rpartition(" ")
        text = before + space + text[len(short) :].partition(" ")[2]
    problem = f"{tokenizer.name} cannot cut a text to {tokens} tokens"
    raise BadInput(tokenizers.FIELD, problem, "use another tokenizer or length")


def _path(settings: RunSettings) -> Path:
    if settings.dataset_path is not None:
        return named(FIELD, settings.dataset_path)
    return Path(str(resources.files("loadgen.workload.datasets") / "prose.txt"))


def _lines(path: Path, tokenizer: Tokenizer) -> list[Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(FIELD, f"{path} cannot be read ({error.strerror})", REMEDY) from error
    except UnicodeDecodeError as error:
        raise BadInput(FIELD, f"{path} is not UTF-8", REMEDY) from error
    if "\0" in text:
        raise BadInput(FIELD, f"{path} is no text: it holds NUL bytes", REMEDY)
    said = [line.strip() for line in text.splitlines() if line.strip()]
    first = tokenizer.ends([FIRST])[0]
    ends = [own[len(first) :] for own in tokenizer.ends([f"{FIRST} {line}" for line in said])]
    lines = [Line(f" {line}", [end - len(FIRST) for end in own]) for line, own in zip(said, ends, strict=True) if own]
    if not lines:
        raise BadInput(FIELD, f"{path} holds no text", REMEDY)
    return lines

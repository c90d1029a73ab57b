"""Sessions: questions and answers of a conversation as the prompts of its turns."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.errors import BadInput
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import parse_seconds
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt

TURNS, THINK = "--turns", "--think-time"
LONGEST_THINK_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One question.

    Attributes:
        question: Its text.
        tokens: Of the question, without special tokens.
        wanted: Tokens wanted of the answer.
        answer: The recorded one, "" where there is none.
        answer_tokens: Its tokens.
    """

    question: str
    tokens: int
    wanted: int
    answer: str = ""
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ThinkTime:
    """How long after an answer the next question is asked.

    Attributes:
        mean_s: Seconds, on average.
        varies: Whether each is drawn, exponentially; else all are the same.
    """

    mean_s: float
    varies: bool = False

    @classmethod
    def parse(cls, text: str) -> "ThinkTime":
        """Read the value of `--think-time`: SECONDS or exp:MEAN.

        Raises:
            BadInput: It is neither, or longer than a day.
        """
        varies = text.startswith("exp:")
        try:
            mean_s = parse_seconds(text.removeprefix("exp:"))
        except ValueError:
            mean_s = math.nan
        if not 0 <= mean_s <= LONGEST_THINK_S:
            raise BadInput(THINK, f"{text!r} is no time", "give seconds, up to a day, or exp: and their mean")
        return cls(mean_s, varies)

    def draw_ns(self, generator: np.random.Generator) -> int:
        """One think time, ns."""
        return int((generator.exponential(self.mean_s) if self.varies else self.mean_s) * NS_PER_S)


def thinking(seed_arrivals: int) -> np.random.Generator:
    """What think times are drawn from: with the arrivals they say when requests are due."""
    return np.random.default_rng([seed_arrivals, *b"think"])


def parse_turns(text: str | None, default: int) -> int | None:
    """Read the value of `--turns`; None for all.

    Raises:
        BadInput: It is neither a number from 1 nor `all`.
    """
    if text is None:
        return default
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(TURNS, f"{text!r} is no number of turns", "give 1 or more, or all")
    return int(text)


def prompts(
    source: str,
    turns: Sequence[Turn],
    think: ThinkTime,
    generator: np.random.Generator,
    *,
    recorded: bool,
    opening: tuple[dict[str, Any], ...] = (),
    tokens: int = 0,
) -> Iterator[Prompt]:
    """The prompts of one session, each a chat that repeats what was said before.

    Args:
        source: Where the session comes from; a turn's source is this and its number.
        turns: What is asked, in order.
        think: The time before each turn but the first.
        generator: Draws it.
        recorded: Whether the recorded answers are repeated; else those of the server that is measured.
        opening: Messages before the first question.
        tokens: Theirs, and the special tokens around a prompt.
    """
    messages = opening
    for number, turn in enumerate(turns):
        messages += ({"role": "user", "content": turn.question},)
        tokens += turn.tokens
        yield Prompt(
            turn.question,
            tokens if recorded or number == 0 else UNPLANNED,
            turn.wanted,
            f"{source}/{number}",
            messages,
            follows=number > 0,
            think_ns=think.draw_ns(generator) if number else 0,
        )
        messages += ({"role": "assistant", "content": turn.answer if recorded else ANSWER},)
        tokens += turn.answer_tokens

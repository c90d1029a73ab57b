"""Sessions: turns of a conversation as prompts, with think times between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.config.think_time import ThinkTime
from loadgen.errors import BadInput
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt

TURNS = "--turns"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session.

    Attributes:
        question: The text of the question.
        tokens: Tokens of the question, without special tokens.
        wanted: Maximum tokens of the answer.
        answer: The recorded answer, "" if there is none.
        answer_tokens: Tokens of the recorded answer.
    """

    question: str
    tokens: int
    wanted: int
    answer: str = ""
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """How many turns each session has: a whole number from `low` to `high`, all equally likely.

    Attributes:
        low: The minimum, 1 or more.
        high: The maximum, inclusive.
        seed: The seed of the draws.
    """

    low: int
    high: int
    seed: int

    @classmethod
    def parse(cls, text: str | None, default: int, seed: int) -> "TurnCounts":
        """Parse `--turns`: N or MIN:MAX.

        Raises:
            BadInput: It is neither, or the range is empty.
        """
        ends = [default] if text is None else [int(end) if end.isdecimal() else 0 for end in text.split(":")]
        if len(ends) > 2 or ends[0] < 1 or ends[-1] < ends[0]:
            raise BadInput(TURNS, f"invalid number of turns {text!r}", "give 1 or more, or MIN:MAX such as 2:8")
        return cls(ends[0], ends[-1], seed)

    def of(self, session: int) -> int:
        """Return the turns of the session with this number."""
        if self.low == self.high:
            return self.low
        return int(np.random.default_rng([self.seed, *b"turns", session]).integers(self.low, self.high, endpoint=True))

    def sessions_with(self, turns: int) -> int:
        """Return how many of the first sessions it takes to have so many turns together."""
        session = 0
        while turns > 0:
            turns -= self.of(session)
            session += 1
        return session


def think_generator(seed_arrivals: int) -> np.random.Generator:
    """Create the generator of think times, seeded like the arrivals because both decide when requests are due."""
    return np.random.default_rng([seed_arrivals, *b"think"])


def session_prompts(
    source: str,
    turns: Sequence[Turn],
    think: ThinkTime,
    generator: np.random.Generator,
    *,
    recorded: bool,
    opening: tuple[dict[str, Any], ...] = (),
    tokens: int = 0,
) -> Iterator[Prompt]:
    """Yield the prompts of one session, each a chat that repeats the turns before it.

    Args:
        source: The source of the session; the source of a turn is this and its number.
        turns: The turns in order.
        think: The time before each turn except the first.
        generator: Draws the think times.
        recorded: Whether to repeat the recorded answers; else those of the measured server.
        opening: Messages before the first question.
        tokens: The tokens of `opening` and of the special tokens of a prompt.
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
            think_ns=think.draw_ns(generator.random) if number else 0,
        )
        messages += ({"role": "assistant", "content": turn.answer if recorded else ANSWER},)
        tokens += turn.answer_tokens

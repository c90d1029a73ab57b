"""Sessions: turns of a conversation as prompts, with think times between them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_range, parse_whole_number
from loadgen.workload.datasets.prompt_rows import message_texts
from loadgen.workload.datasets.think_times import ThinkTimes
from loadgen.workload.prompt import ANSWER, UNPLANNED, Message, Prompt

TURNS = "--turns"
NO_ANSWER: Final[Message] = {"role": "assistant", "content": ""}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session.

    Attributes:
        messages: What is new in it: a question, or several messages such as the results of tools.
        tokens: Tokens of these messages, without special tokens; UNPLANNED if unknown.
        wanted: Maximum tokens of the answer.
        answer: The recorded answer.
        answer_tokens: Tokens of the recorded answer.
    """

    messages: tuple[Message, ...]
    tokens: int
    wanted: int
    answer: Message = field(default_factory=NO_ANSWER.copy)
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
        bounds = (default, default) if text is None else parse_range(text, parse_whole_number)
        if bounds is None or bounds[0] < 1:
            raise BadInput(TURNS, f"invalid number of turns {text!r}", "give 1 or more, or MIN:MAX such as 2:8")
        return cls(*bounds, seed)

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


def session_prompts(
    session: int,
    source: str,
    turns: Sequence[Turn],
    think_times: ThinkTimes,
    *,
    recorded: bool,
    opening: tuple[Message, ...] = (),
    tokens: int = 0,
    fields: Mapping[str, Any] | None = None,
) -> Iterator[Prompt]:
    """Yield the prompts of one session, each a chat that repeats the turns before it.

    Args:
        session: The number of the session in the run.
        source: The source of the session; the source of a turn is this and its number.
        turns: The turns in order.
        think_times: The times before its turns.
        recorded: Whether to repeat the recorded answers; else those of the measured server.
        opening: Messages before the first question.
        tokens: The tokens of `opening` and of the special tokens of a prompt.
        fields: Further fields of the body of each request.
    """
    messages = opening
    for number, turn in enumerate(turns):
        messages += turn.messages
        tokens += turn.tokens
        yield Prompt(
            "\n".join(message_texts(turn.messages)),
            tokens if (recorded or number == 0) and turn.tokens != UNPLANNED else UNPLANNED,
            turn.wanted,
            f"{source}/{number}",
            messages,
            after=(1,) if number else (),
            think_ns=think_times.before_ns(session, number),
            fields=dict(fields or {}),
        )
        messages += (turn.answer if recorded else turn.answer | {"content": ANSWER},)
        tokens += turn.answer_tokens


def parse_recorded_turns(text: str | None) -> int | None:
    """Parse `--turns` of recorded conversations; None means all.

    Raises:
        BadInput: It is neither a number from 1 nor `all`.
    """
    if text == "all":
        return None
    if text is not None and not text.isdecimal():
        raise BadInput(TURNS, f"{text!r} is not a number of turns of recorded conversations", "give 1 or more, or all")
    return TurnCounts.parse(text, 1, 0).low

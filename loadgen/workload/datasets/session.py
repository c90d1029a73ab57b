"""Sessions: turns of a conversation as prompts, with think times between them.

`EndlessSessions` is a data set of sessions that has no end. `ThinkTimes` are the times before the
turns of sessions.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import ThinkTime
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import parse_range, parse_whole_number
from loadgen.workload.datasets.lengths import Lengths
from loadgen.workload.datasets.prompt_rows import message_texts
from loadgen.workload.draws import uniforms
from loadgen.workload.prompt import ANSWER, UNPLANNED, Message, Prompt

TURNS = setting.turns
MAX_DEVIATIONS = 4  # above the mean of normal numbers of turns; 3 of 100,000 would be above
logger = logging.getLogger("loadgen")
NO_ANSWER: Final[Message] = {"role": "assistant", "content": ""}


@dataclass(frozen=True, slots=True)
class ThinkTimes:
    """Draws a time for each turn by itself.

    Attributes:
        law: The distribution of the times.
        seed: The seed of the draws: that of the arrivals, because both decide when requests are
            due.
    """

    law: ThinkTime
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the times of `--think-time`.

        Raises:
            BadInput: Its value is invalid.
        """
        return cls(ThinkTime.parse(settings.think_time), seed_of(settings, "arrivals"))

    def before_ns(self, session: int, turn: int) -> int:
        """Return the time before a turn, ns: none before the first, which is number 0."""
        if turn == 0:
            return 0
        drawn = uniforms(2, self.seed, "think", session, turn) if self.law.varies else ()
        return int(self.law.draw_s(drawn) * NS_PER_S)

    def provenance(self) -> dict[str, Any]:
        """Return the mean, and whether the times vary, as JSON."""
        return {"think_time_s": self.law.mean_s, "think_time_varies": self.law.varies}


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a session.

    Attributes:
        messages: What is new in it: a question, or several messages such as the results of tools.
        tokens: Tokens of these messages, without special tokens; UNPLANNED if unknown.
        output_tokens: Maximum tokens of the answer.
        answer: The recorded answer.
        answer_tokens: Tokens of the recorded answer.
    """

    messages: tuple[Message, ...]
    tokens: int
    output_tokens: int
    answer: Message = field(default_factory=NO_ANSWER.copy)
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """How many turns each session has: a whole number from `low` to `high`, all equally likely or
    by a law.

    Attributes:
        low: The minimum, 1 or more.
        high: The maximum, inclusive.
        seed: The seed of the draws.
        law: A distribution of them; None: all are equally likely.
    """

    low: int
    high: int
    seed: int
    law: Lengths | None = None

    @classmethod
    def parse(cls, text: str | None, default: int, seed: int) -> "TurnCounts":
        """Parse `--turns`: N, MIN:MAX, or normal:MEAN:STDEV, up to 4 deviations above the mean, or
        with bounds of its own.

        Raises:
            BadInput: It is neither, or the range is empty.
        """
        if text is not None and text.startswith("normal:"):
            law = Lengths.parse(TURNS, text)
            high = min(law.high, math.ceil(law.mean + MAX_DEVIATIONS * law.stdev))
            law = Lengths(law.low, high, law.law, law.mean, law.stdev)
            return cls(law.low, high, seed, law)
        bounds = (default, default) if text is None else parse_range(text, parse_whole_number)
        if bounds is None or bounds[0] < 1:
            raise BadInput(
                TURNS,
                f"invalid number of turns {text!r}",
                "give 1 or more, MIN:MAX such as 2:8, or normal:MEAN:STDEV",
            )
        return cls(*bounds, seed)

    def of(self, session: int) -> int:
        """Return the turns of the session with this number."""
        if self.low == self.high:
            return self.low
        generator = np.random.default_rng([self.seed, *b"turns", session])
        if self.law is not None:
            return int(self.law.draw(generator, 1)[0])
        return int(generator.integers(self.low, self.high, endpoint=True))

    def sessions_with(self, turns: int) -> int:
        """Return how many of the first sessions it takes to have so many turns together."""
        session = 0
        while turns > 0:
            turns -= self.of(session)
            session += 1
        return session


class EndlessSessions(ABC):
    """A data set that begins with the same sessions, however many of them are asked for."""

    __slots__ = ()

    @abstractmethod
    def endless(self) -> Iterator[Iterable[Prompt]]:
        """Yield the prompts of each session, without an end, the same in every call.

        Raises:
            BadInput: A session cannot be read, or there is none.
        """

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. The last session
        may be incomplete.

        Raises:
            BadInput: As `endless`.
        """
        return first_prompts(chain.from_iterable(self.endless()), count)

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of `count` sessions.

        Raises:
            BadInput: As `endless`.
        """
        return chain.from_iterable(islice(self.endless(), count))


def first_prompts(prompts: Iterable[Prompt], count: int) -> Iterator[Prompt]:
    """Yield the first `count` prompts of sessions; a warning says if the last session is cut."""
    sessions = turns = 0
    for number, prompt in enumerate(prompts):
        if number == count:
            if prompt.follows:
                logger.warning(
                    "%d requests are %d sessions, the last of which is cut after turn %d "
                    "(--num-prompts counts requests, not sessions)",
                    count,
                    sessions,
                    turns,
                )
            return
        if not prompt.follows:
            sessions, turns = sessions + 1, 0
        turns += 1
        yield prompt


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
            turn.output_tokens,
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
        raise BadInput(
            TURNS,
            f"{text!r} is not a number of turns of recorded conversations",
            "give 1 or more, or all",
        )
    return TurnCounts.parse(text, 1, 0).low

"""`MultiTurnDataset`: sessions of random questions of exact length, each repeating the turns
before it.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from loadgen.config.data import MULTI_TURN
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.prefix_groups import PrefixGroups
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.datasets.session import (
    TURNS,
    ThinkTimes,
    Turn,
    TurnCounts,
    first_prompts,
    session_prompts,
)
from loadgen.workload.prompt import Prompt, user_message
from loadgen.workload.tokenizer.tokenizer import Tokenizer

DEFAULT_TURNS = 3


@dataclass(frozen=True, slots=True)
class MultiTurnDataset:
    """Sessions of questions of distinct random words.

    Listed lengths are those of the turns of a session: each session begins with the first.

    Attributes:
        questions: Draws questions and the tokens of their answers: as many for each session as the
            longest has. Its prefixes are the system messages, one of which each session begins
            with.
        turns: Questions in each session.
        think_times: The times from an answer to the next question.
    """

    questions: RandomDataset
    turns: TurnCounts
    think_times: ThinkTimes

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--turns`, `--think-time`, `--random-*` (of each turn),
        `--prefix-buckets`, seeds.

        Raises:
            BadInput: A value is out of range, or the tokenizer cannot be loaded or has too few
                words.
        """
        return cls.of(replace(RandomDataset.from_settings(settings), name=MULTI_TURN), settings)

    @classmethod
    def of(cls, questions: RandomDataset, settings: RunSettings) -> Self:
        """Create the data set of these questions; the prefixes become system messages.

        Raises:
            BadInput: A value is out of range.
        """
        if settings.turns == "all":
            raise BadInput(
                TURNS, "all is not possible for random sessions", "give a number, or MIN:MAX"
            )
        turns = TurnCounts.parse(settings.turns, DEFAULT_TURNS, seed_of(settings, "prompts"))
        if settings.history == "recorded":
            raise BadInput(
                setting.history, "recorded is not possible for random sessions", "leave it out"
            )
        return cls(questions, turns, ThinkTimes.from_settings(settings))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the questions."""
        return self.questions.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the last session of which may have fewer turns."""
        return first_prompts(self.sessions(self.turns.sessions_with(count)), count)

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of `count` sessions, the same in every call."""
        questions = self._unprefixed.prompts(count * self.turns.high)
        if self.questions.shuffled:
            return self._generate(questions, range(count))
        groups = self.questions.prefixes.numbers_of(np.arange(count))
        return self._generate(questions, np.argsort(groups, kind="stable").tolist())

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of further sessions, endlessly."""
        number = self.turns.sessions_with(count)
        return self._generate(
            self._unprefixed.beyond(number * self.turns.high), itertools.count(number)
        )

    @property
    def _unprefixed(self) -> RandomDataset:
        return replace(self.questions, prefixes=PrefixGroups())

    def _generate(self, questions: Iterator[Prompt], numbers: Iterable[int]) -> Iterator[Prompt]:
        special = self.questions.tokenizer.special_tokens
        prefixes = self.questions.prefixes.draw(self.questions.drawing)
        for number in numbers:
            turns = [
                Turn(
                    (user_message(question.text),),
                    question.input_tokens - special,
                    question.output_tokens,
                )
                for question in itertools.islice(questions, self.turns.high)
            ]
            (group,) = self.questions.prefixes.numbers_of(np.array([number]))
            prefix = prefixes[group]
            yield from session_prompts(
                number,
                f"{self.questions.name}/{self.questions.drawing.seed}/{number}",
                turns[: self.turns.of(number)],
                self.think_times,
                recorded=False,
                opening=({"role": "system", "content": prefix.text},) if prefix.tokens else (),
                tokens=prefix.tokens + special,
            )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        turns = self.turns
        return self.questions.provenance() | {
            "turns": turns.low if turns.low == turns.high else [turns.low, turns.high],
            **self.think_times.provenance(),
            "history": "real",
        }

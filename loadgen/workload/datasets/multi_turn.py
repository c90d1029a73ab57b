"""Multi-turn sessions of random words: every question of an exact length, repeated with the answers to those before."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.datasets.session import TURNS, ThinkTime, Turn, parse_turns, prompts, thinking
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer

DEFAULT_TURNS = 3


@dataclass(frozen=True, slots=True)
class MultiTurnDataset:
    """Sessions of `turns` questions each, of random words that no other has.

    Attributes:
        questions: Draws a question, and the tokens wanted of its answer.
        turns: Questions of a session.
        prefix: A system message that all sessions share, "" for none.
        prefix_tokens: Its tokens.
        think: The time between an answer and the next question.
        seed_arrivals: Draws it.
    """

    questions: RandomDataset
    turns: int
    prefix: str
    prefix_tokens: int
    think: ThinkTime
    seed_arrivals: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--turns`, `--think-time`, the `--random-*` fields (of each turn) and the seeds.

        Raises:
            BadInput: A value is out of range, or the tokenizer cannot be had or has too few words.
        """
        turns = parse_turns(settings.turns, DEFAULT_TURNS)
        if turns is None:
            raise BadInput(TURNS, "random sessions have no end of their own", "give a number")
        if settings.history == "recorded":
            raise BadInput("--history", "random sessions have no recorded answers", "leave it out")
        questions = RandomDataset.from_settings(settings.replace(random_prefix_len=0))
        return cls(
            questions=questions,
            turns=turns,
            prefix=questions.drawing.prefixes(settings.random_prefix_len)[0],
            prefix_tokens=settings.random_prefix_len,
            think=ThinkTime.parse(settings.think_time),
            seed_arrivals=seed_of(settings, "arrivals"),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """What counts the questions' tokens."""
        return self.questions.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, of which the last session may have fewer turns than the others."""
        return itertools.islice(self.sessions(math.ceil(count / self.turns)), count)

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of `count` sessions, always the same ones in the same order."""
        return self._made(self.questions.prompts(count * self.turns), range(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of further sessions, without an end."""
        number = math.ceil(count / self.turns)
        return self._made(self.questions.beyond(number * self.turns), itertools.count(number))

    def _made(self, asked: Iterator[Prompt], numbers: Iterable[int]) -> Iterator[Prompt]:
        """Yield the prompts of the sessions of these numbers, whose questions are those asked."""
        special = self.questions.tokenizer.special_tokens
        opening = ({"role": "system", "content": self.prefix},) if self.prefix else ()
        generator = thinking(self.seed_arrivals)
        for number in numbers:
            turns = [
                Turn(question.text, question.input_tokens - special, question.output_tokens)
                for question in itertools.islice(asked, self.turns)
            ]
            yield from prompts(
                f"multi_turn/{self.questions.seed_prompts}/{number}",
                turns,
                self.think,
                generator,
                recorded=False,
                opening=opening,
                tokens=self.prefix_tokens + special,
            )

    def provenance(self) -> dict[str, Any]:
        """Return what `random` says of its prompts, which here are the questions, and what makes sessions of them."""
        return self.questions.provenance() | {
            "name": "multi_turn",
            "turns": self.turns,
            "prefix_tokens": self.prefix_tokens,
            "think_time_s": self.think.mean_s,
            "think_time_varies": self.think.varies,
            "history": "real",
        }

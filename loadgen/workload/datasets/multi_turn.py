"""`MultiTurnDataset`: sessions of random questions of exact length, each repeating the turns before it."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.think_time import ThinkTime
from loadgen.errors import BadInput
from loadgen.workload.datasets.prefix_buckets import PrefixBuckets
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.datasets.session import TURNS, Turn, TurnCounts, session_prompts, think_generator
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer

DEFAULT_TURNS = 3


@dataclass(frozen=True, slots=True)
class MultiTurnDataset:
    """Sessions of questions of distinct random words.

    Listed lengths are those of the turns of a session: each session begins with the first.

    Attributes:
        questions: Draws questions and the tokens of their answers: as many for each session as the longest has.
        turns: Questions in each session.
        prefixes: The system messages, one of which each session begins with; none: no session has one.
        think: The time from an answer to the next question.
        seed_arrivals: The seed of think times.
    """

    questions: RandomDataset
    turns: TurnCounts
    prefixes: PrefixBuckets
    think: ThinkTime
    seed_arrivals: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--turns`, `--think-time`, `--random-*` (of each turn), `--prefix-buckets`, seeds.

        Raises:
            BadInput: A value is out of range, or the tokenizer cannot be loaded or has too few words.
        """
        if settings.turns == "all":
            raise BadInput(TURNS, "all is not possible for random sessions", "give a number, or MIN:MAX")
        turns = TurnCounts.parse(settings.turns, DEFAULT_TURNS, seed_of(settings, "prompts"))
        if settings.history == "recorded":
            raise BadInput("--history", "recorded is not possible for random sessions", "leave it out")
        questions = RandomDataset.from_settings(settings.replace(random_prefix_len=0))
        return cls(
            questions=questions,
            turns=turns,
            prefixes=PrefixBuckets.parse(
                settings.prefix_buckets, settings.random_prefix_len, seed_of(settings, "prompts")
            ),
            think=ThinkTime.parse(settings.think_time),
            seed_arrivals=seed_of(settings, "arrivals"),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the questions."""
        return self.questions.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the last session of which may have fewer turns."""
        return itertools.islice(self.sessions(self.turns.sessions_with(count)), count)

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of `count` sessions, the same in every call."""
        return self._generate(self.questions.prompts(count * self.turns.high), range(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of further sessions, endlessly."""
        number = self.turns.sessions_with(count)
        return self._generate(self.questions.beyond(number * self.turns.high), itertools.count(number))

    def _generate(self, questions: Iterator[Prompt], numbers: Iterable[int]) -> Iterator[Prompt]:
        """Yield the prompts of sessions by number, with these questions."""
        special = self.questions.tokenizer.special_tokens
        drawn = self.prefixes.draw_texts(self.questions.drawing)
        generator = think_generator(self.seed_arrivals)
        for number in numbers:
            turns = [
                Turn(question.text, question.input_tokens - special, question.output_tokens)
                for question in itertools.islice(questions, self.turns.high)
            ]
            prefix, prefix_tokens = drawn[self.prefixes.number_of(number)] if drawn else ("", 0)
            yield from session_prompts(
                f"multi_turn/{self.questions.seed_prompts}/{number}",
                turns[: self.turns.of(number)],
                self.think,
                generator,
                recorded=False,
                opening=({"role": "system", "content": prefix},) if prefix else (),
                tokens=prefix_tokens + special,
            )

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of the questions, and of the sessions."""
        turns = self.turns
        return self.questions.provenance() | {
            "name": "multi_turn",
            "turns": turns.low if turns.low == turns.high else [turns.low, turns.high],
            "prefixes": [asdict(bucket) for bucket in self.prefixes.buckets],
            "think_time_s": self.think.mean_s,
            "think_time_varies": self.think.varies,
            "history": "real",
        }

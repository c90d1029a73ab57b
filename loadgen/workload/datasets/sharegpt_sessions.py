"""`ShareGPTSessions`: ShareGPT conversations, sent turn by turn."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.errors import BadInput
from loadgen.workload.datasets.endless_sessions import EndlessSessions
from loadgen.workload.datasets.session import Turn, session_prompts, user
from loadgen.workload.datasets.sharegpt_file import REMEDY, Conversations
from loadgen.workload.datasets.think_times import ThinkTimes
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BATCH = 64  # conversations read and encoded at a time


@dataclass(frozen=True, slots=True)
class ShareGPTSessions(EndlessSessions):
    """Conversations in an order that `seed_order` shuffles, each a session of up to `turns` questions.

    A conversation is used if human (user) and gpt (assistant) alternate from the start and every text can be sent. A
    last question without an answer is left out. Lengths are not limited.

    Attributes:
        conversations: The file.
        tokenizer: Counts the tokens.
        turns: Maximum questions of a session; None for all.
        output_tokens: Maximum tokens of each answer; None: the length of the recorded answer.
        recorded: Whether further turns repeat the recorded answers; else those of the measured server.
        think_times: The times from an answer to the next question.
        seed_prompts: The seed of the repeated rows if the file is too short.
        seed_order: The seed of the shuffled order.
    """

    conversations: Conversations
    tokenizer: Tokenizer
    turns: int | None
    output_tokens: int | None
    recorded: bool
    think_times: ThinkTimes
    seed_prompts: int
    seed_order: int

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seeds, and name, size and hash of file and tokenizer. Reads the whole file."""
        return {
            "name": "sharegpt",
            "rule": "whole conversations",
            "turns": self.turns,
            "history": "recorded" if self.recorded else "real",
            **self.think_times.provenance(),
            "seed_prompts": self.seed_prompts,
            "seed_order": self.seed_order,
            "output_tokens": self.output_tokens,
            **self.conversations.provenance(),
            **self.tokenizer.provenance(),
        }

    def endless(self) -> Iterator[list[Prompt]]:
        """Yield the prompts of each session: after the end of the file, random ones are repeated.

        Raises:
            BadInput: The part of the file that is read is not JSON, or no conversation in it can be used.
        """
        shuffled = list(range(len(self.conversations)))
        random.Random(self.seed_order).shuffle(shuffled)
        numbers, used = itertools.count(), list[int]()
        for start in range(0, len(shuffled), BATCH):
            for row, session in self._read(shuffled[start : start + BATCH], numbers):
                used.append(row)
                yield session
        if not used:
            problem = f"{self.conversations.path} has no conversation in which human and gpt alternate"
            raise BadInput(DATASET_PATH, problem, REMEDY)
        repeats = random.Random(self.seed_prompts)
        while True:
            for _, session in self._read(repeats.choices(used, k=BATCH), numbers):
                yield session

    def _read(self, rows: Sequence[int], numbers: Iterator[int]) -> Iterator[tuple[int, list[Prompt]]]:
        """Read conversations, and yield the sessions of the usable ones, each with its row and the next number."""
        found = [(row, *taken) for row in rows if (taken := self.conversations.exchanges(row))]
        found = [(row, source, pairs[: self.turns]) for row, source, pairs in found]
        counts = iter(self.tokenizer.count([text for _, _, pairs in found for pair in pairs for text in pair]))
        for row, source, pairs in found:
            turns = []
            for question, answer in pairs:
                asked, answered = next(counts), next(counts)
                given = {"role": "assistant", "content": answer}
                turns.append(Turn((user(question),), asked, self.output_tokens or answered, given, answered))
            special = self.tokenizer.special_tokens
            session = session_prompts(
                next(numbers), f"sharegpt/{source}", turns, self.think_times, recorded=self.recorded, tokens=special
            )
            yield row, list(session)

"""`ShareGPTSessions`: ShareGPT conversations, sent turn by turn."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.endless_sessions import EndlessSessions
from loadgen.workload.datasets.hub.order import shuffled_list
from loadgen.workload.datasets.session import Turn, session_prompts
from loadgen.workload.datasets.sharegpt_file import REMEDY, Conversations
from loadgen.workload.datasets.think_times import ThinkTimes
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import Prompt, user_message
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BATCH = 64  # conversations read and encoded at a time


@dataclass(frozen=True, slots=True)
class ShareGPTSessions(EndlessSessions):
    """Conversations in an order that `seed_order` shuffles, each a session of up to `turns` questions.

    Attributes:
        turns: Maximum questions of a session; None for all.
    """

    # A conversation is used if human (user) and gpt (assistant) alternate from the start and every text can be sent. A
    # last question without an answer is left out. Lengths are not limited.

    conversations: Conversations
    tokenizer: Tokenizer
    settings: RunSettings
    turns: int | None
    think_times: ThinkTimes

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "sharegpt",
            "rule": "whole conversations",
            "turns": self.turns,
            "history": self.settings.history,
            **self.think_times.provenance(),
            "seed_prompts": seed_of(self.settings, "prompts"),
            "seed_order": seed_of(self.settings, "order"),
            "output_tokens": self.settings.sharegpt_output_len,
            **self.conversations.provenance(),
            **self.tokenizer.provenance(),
        }

    def endless(self) -> Iterator[list[Prompt]]:
        """Yield the prompts of each session: after the end of the file, random ones are repeated."""
        rows = shuffled_list(range(len(self.conversations)), seed_of(self.settings, "order"))
        numbers, used = itertools.count(), list[int]()
        for start in range(0, len(rows), BATCH):
            for row, session in self._read(rows[start : start + BATCH], numbers):
                used.append(row)
                yield session
        if not used:
            problem = f"{self.conversations.path} has no conversation in which human and gpt alternate"
            raise BadInput(DATASET_PATH, problem, REMEDY)
        repeats = random.Random(seed_of(self.settings, "prompts"))
        while True:
            for _, session in self._read(repeats.choices(used, k=BATCH), numbers):
                yield session

    def _read(self, rows: Sequence[int], numbers: Iterator[int]) -> Iterator[tuple[int, list[Prompt]]]:
        found = [(row, *taken) for row in rows if (taken := self.conversations.exchanges(row))]
        found = [(row, source, pairs[: self.turns]) for row, source, pairs in found]
        counts = iter(self.tokenizer.count([text for _, _, pairs in found for pair in pairs for text in pair]))
        for row, source, pairs in found:
            turns = []
            for question, answer in pairs:
                asked, answered = next(counts), next(counts)
                wanted = self.settings.sharegpt_output_len or answered
                given = {"role": "assistant", "content": answer}
                turns.append(Turn((user_message(question),), asked, wanted, given, answered))
            session = session_prompts(
                next(numbers),
                f"sharegpt/{source}",
                turns,
                self.think_times,
                recorded=self.settings.history == "recorded",
                tokens=self.tokenizer.special_tokens,
            )
            yield row, list(session)

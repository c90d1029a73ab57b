"""`ShareGPTDataset`: first questions of ShareGPT conversations, sampled by the rule of `vllm bench
serve`.

`ShareGPTSessions` are conversations that are sent turn by turn.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.prompt_rows import shuffled_list
from loadgen.workload.datasets.session import (
    EndlessSessions,
    ThinkTimes,
    Turn,
    parse_recorded_turns,
    session_prompts,
)
from loadgen.workload.datasets.sharegpt_file import (
    REMEDY,
    Conversation,
    ConversationLines,
    Conversations,
    sharegpt_path,
)
from loadgen.workload.encoded_images import referred
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.image import part
from loadgen.workload.prompt import Prompt, user_message
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_file, tokenizer_of

BATCH = 256  # conversations read and encoded at a time
SESSION_BATCH = 64  # conversations read and encoded at a time


@dataclass(frozen=True, slots=True)
class ShareGPTDataset:
    """Conversations in an order that `seed_order` shuffles, reduced to first question and length of
    its answer.

    The rule of `vllm bench serve`: shuffle the conversations of at least two turns, take the first
    two turns of any speaker, keep those with at least 4 tokens each, at most 1024 in the prompt and
    2048 together, and stop at `count`. If the file has fewer, repeat random ones. With a single
    seed, the rows are those of vLLM.

    Attributes:
        conversations: The file.
        tokenizer: Counts the tokens, with special ones.
        settings: The settings of the run: the length of answers, and the seeds.
    """

    NAME: ClassVar[str] = "sharegpt"
    RULE: ClassVar[str] = "vllm-0.11"
    HAS_IMAGES: ClassVar[bool] = True  # whether images of conversations are sent
    MIN_TOKENS: ClassVar[int] = 4  # of a prompt, and of a recorded answer
    MAX_PROMPT_TOKENS: ClassVar[float] = 1024
    MAX_TOTAL_TOKENS: ClassVar[float] = 2048  # of prompt and answer together

    conversations: Conversations | ConversationLines
    tokenizer: Tokenizer
    settings: RunSettings

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "ShareGPTDataset | ShareGPTSessions":
        """Create it from `--dataset-path`, `--tokenizer` and `--sharegpt-output-len`; with
        `--turns`, of sessions.

        Raises:
            BadInput: The file or the tokenizer cannot be used, or turns or think time cannot be
                read.
        """
        path = sharegpt_path(settings)
        turns = parse_recorded_turns(settings.turns)
        think_times = ThinkTimes.from_settings(settings)
        conversations = Conversations(path)
        tokenizer = tokenizer_of(settings)
        if turns != 1:
            return ShareGPTSessions(conversations, tokenizer, settings, turns, think_times)
        return cls(conversations, tokenizer, settings)

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return the file and the tokenizer's file; None if one is missing, and for sessions."""
        tokenizer = tokenizer_file(settings)
        if tokenizer is None or settings.dataset_path is None or settings.timed_by_data:
            return None
        return [sharegpt_path(settings), tokenizer]

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`.

        One batch at a time is in memory.

        Raises:
            BadInput: The part of the file that is read is not JSON, or no conversation in it is of
                a usable length.
        """
        rows = iter(shuffled_list(range(len(self.conversations)), seed_of(self.settings, "order")))
        used: list[int] = []
        while len(used) < count and (batch := list(islice(rows, min(BATCH, count - len(used))))):
            for row, prompt in self._read(batch):
                used.append(row)
                yield prompt
        if len(used) < count:
            if not used:
                problem = f"{self.conversations.path} has no conversation of a usable length"
                raise BadInput(DATASET_PATH, problem, REMEDY)
            repeats = random.Random(seed_of(self.settings, "prompts"))
            more = [repeats.choice(used) for _ in range(count - len(used))]
            for start in range(0, len(more), BATCH):
                yield from (prompt for _, prompt in self._read(more[start : start + BATCH]))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the usable conversations after the first `count`, each once.

        Raises:
            BadInput: The part of the file that is read is not JSON.
        """
        rows = iter(shuffled_list(range(len(self.conversations)), seed_of(self.settings, "order")))
        batches = iter(lambda: list(islice(rows, BATCH)), [])
        prompts = itertools.chain.from_iterable(map(self._read, batches))
        return (prompt for _, prompt in islice(prompts, count, None))

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.NAME,
            "rule": self.RULE,
            "seed_prompts": seed_of(self.settings, "prompts"),
            "seed_order": seed_of(self.settings, "order"),
            "output_tokens": self.settings.sharegpt_output_len,
            **self.conversations.provenance(),
            "conversations_of_two_turns": len(self.conversations),
            **self.tokenizer.provenance(),
        }

    def _read(self, rows: Sequence[int]) -> Iterator[tuple[int, Prompt]]:
        numbered = [
            (row, conversation) for row in rows if (conversation := self.conversations[row])
        ]
        inputs = self.tokenizer.count(
            [conversation.prompt for _, conversation in numbered], special=True
        )
        # Count answers of usable prompts only: the longest ones follow prompts that are too long.
        usable = [
            pair
            for pair in zip(numbered, inputs, strict=True)
            if self.MIN_TOKENS <= pair[1] <= self.MAX_PROMPT_TOKENS
        ]
        length = self.settings.sharegpt_output_len
        if length is None:
            outputs = self.tokenizer.count(
                [conversation.answer for (_, conversation), _ in usable], special=True
            )
        else:
            outputs = [length] * len(usable)
        for ((row, conversation), tokens), output_tokens in zip(usable, outputs, strict=True):
            is_long = output_tokens >= self.MIN_TOKENS or length is not None
            if is_long and tokens + output_tokens <= self.MAX_TOTAL_TOKENS:
                chat = self._chat(conversation)
                yield (
                    row,
                    Prompt(
                        conversation.prompt,
                        tokens,
                        output_tokens,
                        f"{self.NAME}/{conversation.source}",
                        chat,
                    ),
                )

    def _chat(self, conversation: Conversation) -> tuple[dict[str, Any], ...]:
        """Return the messages of a conversation with an image; empty without one, and by the rules
        of other tools.

        Raises:
            BadInput: It has a video, or what names the image is no text.
        """
        if not (self.HAS_IMAGES and (conversation.image or conversation.video)):
            return ()
        location = f"{self.conversations.path}: conversation {conversation.source}"
        if not conversation.image:
            problem = f"{location} has a video, which is not supported"
            raise BadInput(DATASET_PATH, problem, "leave out the conversations with videos")
        try:
            picture = part(referred(conversation.image))
        except ValueError as error:
            raise BadInput(DATASET_PATH, f"{location} {error}", REMEDY) from error
        return (
            {"role": "user", "content": [{"type": "text", "text": conversation.prompt}, picture]},
        )


@dataclass(frozen=True, slots=True)
class ShareGPTSessions(EndlessSessions):
    """Conversations in an order that `seed_order` shuffles, each a session of up to `turns`
    questions.

    A conversation is used if human (user) and gpt (assistant) alternate from the start and every
    text can be sent. A last question without an answer is left out. Lengths are not limited.

    Attributes:
        conversations: The file.
        tokenizer: Counts the tokens.
        settings: The settings of the run: lengths of answers, history, and the seeds.
        turns: Maximum questions of a session; None for all.
        think_times: The times from an answer to the next question.
    """

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
        """Yield the prompts of each session: after the end of the file, random ones are repeated.

        Raises:
            BadInput: The part of the file that is read is not JSON, or no conversation in it can be
                used.
        """
        rows = shuffled_list(range(len(self.conversations)), seed_of(self.settings, "order"))
        numbers = itertools.count()
        used: list[int] = []
        for start in range(0, len(rows), SESSION_BATCH):
            for row, session in self._read(rows[start : start + SESSION_BATCH], numbers):
                used.append(row)
                yield session
        if not used:
            problem = (
                f"{self.conversations.path} has no conversation in which human and gpt alternate"
            )
            raise BadInput(DATASET_PATH, problem, REMEDY)
        repeats = random.Random(seed_of(self.settings, "prompts"))
        while True:
            for _, session in self._read(repeats.choices(used, k=SESSION_BATCH), numbers):
                yield session

    def _read(
        self, rows: Sequence[int], numbers: Iterator[int]
    ) -> Iterator[tuple[int, list[Prompt]]]:
        conversations = [
            (row, *taken) for row in rows if (taken := self.conversations.exchanges(row))
        ]
        conversations = [(row, source, pairs[: self.turns]) for row, source, pairs in conversations]
        counts = iter(
            self.tokenizer.count(
                [text for _, _, pairs in conversations for pair in pairs for text in pair]
            )
        )
        for row, source, pairs in conversations:
            turns = []
            for question, answer in pairs:
                question_tokens, answer_tokens = next(counts), next(counts)
                output_tokens = self.settings.sharegpt_output_len or answer_tokens
                message = {"role": "assistant", "content": answer}
                turns.append(
                    Turn(
                        (user_message(question),),
                        question_tokens,
                        output_tokens,
                        message,
                        answer_tokens,
                    )
                )
            session = session_prompts(
                next(numbers),
                f"sharegpt/{source}",
                turns,
                self.think_times,
                recorded=self.settings.history == "recorded",
                tokens=self.tokenizer.special_tokens,
            )
            yield row, list(session)

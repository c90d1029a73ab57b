"""`ShareGPTDataset`: first questions of ShareGPT conversations, sampled by the rule of `vllm bench serve`."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.conversation_lines import ConversationLines
from loadgen.workload.datasets.hub.order import shuffled_list
from loadgen.workload.datasets.session import parse_recorded_turns
from loadgen.workload.datasets.sharegpt_file import REMEDY, Conversation, Conversations, sharegpt_path
from loadgen.workload.datasets.sharegpt_sessions import ShareGPTSessions
from loadgen.workload.datasets.think_times import ThinkTimes
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.image import part
from loadgen.workload.image_file import referred
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_file, tokenizer_of

BATCH = 256  # conversations read and encoded at a time


@dataclass(frozen=True, slots=True)
class ShareGPTDataset:
    """Conversations in an order that `seed_order` shuffles, reduced to first question and length of its answer.

    Attributes:
        tokenizer: Counts the tokens, with special ones.
    """

    # The rule of `vllm bench serve`: shuffle the conversations of at least two turns, take the first two turns of any
    # speaker, keep those with at least 4 tokens each, at most 1024 in the prompt and 2048 together, and stop at
    # `count`. If the file has fewer, repeat random ones. With a single seed, the rows are those of vLLM.

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
        """Create it from `--dataset-path`, `--tokenizer` and `--sharegpt-output-len`; with `--turns`, of sessions."""
        path = sharegpt_path(settings)
        turns, think_times = parse_recorded_turns(settings.turns), ThinkTimes.from_settings(settings)
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
        """Yield `count` prompts, the first k of which are those of `prompts(k)`."""
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
        """Yield the usable conversations after the first `count`, each once."""
        rows = iter(shuffled_list(range(len(self.conversations)), seed_of(self.settings, "order")))
        batches = iter(lambda: list(islice(rows, BATCH)), [])
        return islice((prompt for batch in batches for _, prompt in self._read(batch)), count, None)

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
        found = [(row, conversation) for row in rows if (conversation := self.conversations[row])]
        inputs = self.tokenizer.count([conversation.prompt for _, conversation in found], special=True)
        # Count answers of usable prompts only: the longest ones follow prompts that are too long.
        asked = [
            pair for pair in zip(found, inputs, strict=True) if self.MIN_TOKENS <= pair[1] <= self.MAX_PROMPT_TOKENS
        ]
        length = self.settings.sharegpt_output_len
        if length is None:
            outputs = self.tokenizer.count([conversation.answer for (_, conversation), _ in asked], special=True)
        else:
            outputs = [length] * len(asked)
        for ((row, conversation), tokens), wanted in zip(asked, outputs, strict=True):
            is_long = wanted >= self.MIN_TOKENS or length is not None
            if is_long and tokens + wanted <= self.MAX_TOTAL_TOKENS:
                chat = self._chat(conversation)
                yield row, Prompt(conversation.prompt, tokens, wanted, f"{self.NAME}/{conversation.source}", chat)

    def _chat(self, conversation: Conversation) -> tuple[dict[str, Any], ...]:
        """Return the messages of a conversation with an image; empty without one, and by the rules of other tools."""
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
        return ({"role": "user", "content": [{"type": "text", "text": conversation.prompt}, picture]},)

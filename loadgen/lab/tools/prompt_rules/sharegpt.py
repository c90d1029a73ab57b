"""Conversations as other tools choose them: the rules `benchmark-runner` and `sglang`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.sharegpt import ShareGPTDataset
from loadgen.workload.datasets.sharegpt_file import (
    ANSWERS,
    ASKS,
    LINES_REMEDY,
    ConversationLines,
    ConversationsInOrder,
    sharegpt_path,
)
from loadgen.workload.files.mapped_file import dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

RULE = "benchmark-runner"
INPUT_LEN = setting.sharegpt_input_len
BATCH = 256  # conversations encoded at a time


class SGLangShareGPT(ShareGPTDataset):
    """Conversations of at least two turns, whose first two have two tokens or more each; lengths
    are not limited.
    """

    __slots__ = ()
    RULE: ClassVar[str] = "sglang"
    HAS_IMAGES: ClassVar[bool] = False
    MIN_TOKENS: ClassVar[int] = 2
    MAX_PROMPT_TOKENS: ClassVar[float] = math.inf
    MAX_TOTAL_TOKENS: ClassVar[float] = math.inf


class SGLangCustom(SGLangShareGPT):
    """The same of a file with a conversation in each line, which is SGLang's data set custom."""

    __slots__ = ()
    NAME: ClassVar[str] = "custom"

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "SGLangCustom":
        """Create it from `--dataset-path`, `--tokenizer` and `--sharegpt-output-len`.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        return cls(
            ConversationLines(dataset_path(settings, LINES_REMEDY)),
            tokenizer_of(settings),
            settings,
        )

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return None: the rows are read as fast as kept prompts."""
        return None


@dataclass(frozen=True, slots=True)
class BenchmarkRunnerShareGPT:
    """Conversations in the file's order whose first turn is a user's and whose second is a model's,
    neither empty.

    Nothing is random. The rule makes the server generate the recorded length.

    Attributes:
        conversations: The file.
        tokenizer: Counts the tokens, those of the answer without special ones.
        output_tokens: Maximum tokens of each answer; None: the length of the recorded answer.
        min_tokens, max_tokens: Questions with fewer or more tokens are left out.
    """

    conversations: ConversationsInOrder
    tokenizer: Tokenizer
    output_tokens: int | None
    min_tokens: int = 0
    max_tokens: float = math.inf

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--tokenizer` and the lengths `--sharegpt-*`.

        Raises:
            BadInput: The file or the tokenizer cannot be used, or the lengths are no range.
        """
        text = settings.sharegpt_input_len
        low: int = 0
        high: float = math.inf
        if text is not None:  # MIN:MAX, either of which may be empty
            first, colon, last = text.partition(":")
            digits = all(end == "" or end.isdecimal() for end in (first, last))
            is_range = colon and digits and (first or last)
            if is_range:
                low = int(first or 0)
                high = int(last) if last else math.inf
            if not is_range or low > high:
                raise BadInput(
                    INPUT_LEN,
                    f"{text!r} is not a range of lengths",
                    "write MIN:MAX, MIN: or :MAX, for example 10:2000",
                )
        return cls(
            conversations=ConversationsInOrder(sharegpt_path(settings)),
            tokenizer=tokenizer_of(settings),
            output_tokens=settings.sharegpt_output_len,
            min_tokens=low,
            max_tokens=high,
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` prompts. One batch at a time is in memory, and no more of the
        file is read.

        Raises:
            BadInput: The part of the file that is read is not JSON, or the file has fewer such
                conversations.
        """
        usable = (
            conversation
            for conversation in self.conversations
            if conversation.speakers[0] in ASKS
            and conversation.speakers[1] in ANSWERS
            and conversation.prompt
            and conversation.answer
        )
        made = 0
        while batch := list(islice(usable, min(BATCH, count - made))):
            inputs = self.tokenizer.count(
                [conversation.prompt for conversation in batch], special=True
            )
            if self.output_tokens is None:
                outputs = self.tokenizer.count([conversation.answer for conversation in batch])
            else:
                outputs = [self.output_tokens] * len(batch)
            for conversation, tokens, output in zip(batch, inputs, outputs, strict=True):
                if self.min_tokens <= tokens - self.tokenizer.special_tokens <= self.max_tokens:
                    made += 1
                    yield Prompt(
                        conversation.prompt, tokens, output, f"sharegpt/{conversation.source}"
                    )
        if made < count:
            what = (
                "questions of this length"
                if self.min_tokens or math.isfinite(self.max_tokens)
                else "questions"
            )
            problem = (
                f"{count} is more than the {made} {what} with an answer in "
                f"{self.conversations.path}"
            )
            raise BadInput(
                setting.num_prompts, problem, "give a lower number, or the complete file"
            )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "sharegpt",
            "rule": RULE,
            "output_tokens": self.output_tokens,
            "input_tokens": [
                self.min_tokens,
                self.max_tokens if math.isfinite(self.max_tokens) else None,
            ],
            **self.conversations.provenance(),
            **self.tokenizer.provenance(),
        }

"""The rule `benchmark-runner`: the first questions of a ShareGPT file, with answers of the recorded length."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.datasets.sharegpt_file import ANSWERS, ASKS, Conversation, ConversationsInOrder, sharegpt_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import Tokenizer

RULE = "benchmark-runner"
BATCH = 256  # conversations encoded at a time


@dataclass(frozen=True, slots=True)
class BenchmarkRunnerShareGPT:
    """Conversations in the file's order whose first turn is a user's and whose second is a model's, neither empty.

    Nothing is random, and lengths are not limited. The rule makes the server generate the recorded length.

    Attributes:
        conversations: The file.
        tokenizer: Counts the tokens, those of the answer without special ones.
        output_tokens: Maximum tokens of each answer; None: the length of the recorded answer.
    """

    conversations: ConversationsInOrder
    tokenizer: Tokenizer
    output_tokens: int | None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--tokenizer` and `--sharegpt-output-len`.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        return cls(
            conversations=ConversationsInOrder(sharegpt_path(settings)),
            tokenizer=tokenizers.tokenizer_of(settings),
            output_tokens=settings.sharegpt_output_len,
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` prompts. One batch at a time is in memory, and no more of the file is read.

        Raises:
            BadInput: The part of the file that is read is not JSON, or the file has fewer such conversations.
        """
        found = (conversation for conversation in self.conversations if _has_question_and_answer(conversation))
        made = 0
        while batch := list(islice(found, min(BATCH, count - made))):
            made += len(batch)
            yield from self._prompts(batch)
        if made < count:
            problem = f"{count} is more than the {made} questions with an answer in {self.conversations.path}"
            raise BadInput("--num-prompts", problem, "give a lower number, or the complete file")

    def provenance(self) -> dict[str, Any]:
        """Return the rule, and name, size and hash of file and tokenizer. Reads the whole file."""
        return {
            "name": "sharegpt",
            "rule": RULE,
            "output_tokens": self.output_tokens,
            **self.conversations.provenance(),
            **self.tokenizer.provenance(),
        }

    def _prompts(self, batch: list[Conversation]) -> Iterator[Prompt]:
        inputs = self.tokenizer.count([conversation.prompt for conversation in batch], special=True)
        if self.output_tokens is None:
            outputs = self.tokenizer.count([conversation.answer for conversation in batch])
        else:
            outputs = [self.output_tokens] * len(batch)
        for conversation, tokens, wanted in zip(batch, inputs, outputs, strict=True):
            yield Prompt(conversation.prompt, tokens, wanted, f"sharegpt/{conversation.source}")


def _has_question_and_answer(conversation: Conversation) -> bool:
    asks, answers = conversation.speakers
    return asks in ASKS and answers in ANSWERS and bool(conversation.prompt and conversation.answer)

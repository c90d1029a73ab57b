"""`ChatSessions`: the chats of a file as sessions, with several messages in a turn where the chat has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.datasets.endless_sessions import EndlessSessions
from loadgen.workload.datasets.prompt_rows import Row, message_texts
from loadgen.workload.datasets.row_file import RowFile
from loadgen.workload.datasets.session import (
    NO_ANSWER,
    TURNS,
    Turn,
    parse_recorded_turns,
    session_prompts,
)
from loadgen.workload.datasets.think_times import ThinkTimes
from loadgen.workload.files.mapped_file import DATASET_PATH
from loadgen.workload.prompt import UNPLANNED, Message, Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

REMEDY = "give rows of messages in which each answer (assistant) follows what asks for it (user, tool, ...)"

Exchange = tuple[list[Message], Message]  # what is new in a turn, and its answer


@dataclass(frozen=True, slots=True)
class ChatSessions(EndlessSessions):
    """The rows of a file in its order, each a session: all messages between two answers are one turn.

    Attributes:
        turns: Maximum turns of a session; None for all.
    """

    # If the file has too few rows, they are repeated.

    rows: RowFile
    turns: int | None
    think_times: ThinkTimes
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def of(cls, rows: RowFile, settings: RunSettings) -> Self:
        """Create the data set from `--turns`, `--think-time`, `--history`, `--custom-output-len` and `--tokenizer`."""
        turns, think_times = parse_recorded_turns(settings.turns), ThinkTimes.from_settings(settings)
        return cls(rows, turns, think_times, settings, LazyTokenizer(settings))

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.settings.dataset_name,
            "rule": "whole chats in the file's order",
            "turns": self.turns,
            "history": self.settings.history,
            **self.think_times.provenance(),
            "output_tokens": self.settings.custom_output_len,
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }

    def endless(self) -> Iterator[Iterator[Prompt]]:
        """Yield the prompts of each session.

        Raises:
            BadInput: A row is no chat that can be sent turn by turn.
        """
        numbers = enumerate(cycle(range(len(self.rows))))
        return (self._session(session, self.rows[number]) for session, number in numbers)

    def _session(self, number: int, row: Row) -> Iterator[Prompt]:
        where = f"{row.source} in {self.rows.path}"
        if row.fields:
            endpoints.check_row_fields(f"extra_body of {where}", row.fields, self.settings)
        if row.input_tokens is not None:
            raise BadInput(DATASET_PATH, f"{where} has input_tokens, which its turns do not share", "leave them out")
        turns = [self._turn(row, *exchange, where) for exchange in _exchanges(row, where)[: self.turns]]
        recorded = self.settings.history == "recorded"
        return session_prompts(number, row.source, turns, self.think_times, recorded=recorded, fields=row.fields)

    def _turn(self, row: Row, messages: list[Message], answer: Message, where: str) -> Turn:
        asked, answered = self._count(messages), self._count([answer])
        wanted = row.output_tokens or max(answered, 0) or self.settings.custom_output_len
        if wanted < 0:
            raise BadInput("--custom-output-len", f"is -1, and {where} has no output_tokens", "give a length")
        return Turn(tuple(messages), asked, wanted, answer, answered)

    def _count(self, messages: Sequence[Message]) -> int:
        if self.tokenizer.absent:
            return UNPLANNED
        texts = message_texts(messages)
        return sum(self.tokenizer().count(texts)) if texts else 0


def _exchanges(row: Row, where: str) -> list[Exchange]:
    """Divide a chat at its answers; one that ends with a question has an empty answer to it."""
    found, new = list[Exchange](), list[Message]()
    for message in row.messages:
        if message["role"] != "assistant":
            new.append(message)
            continue
        if not new:
            raise BadInput(DATASET_PATH, f"{where} has an answer to nothing, so {TURNS} cannot divide it", REMEDY)
        found.append((new, message))
        new = []
    if new:
        found.append((new, NO_ANSWER))
    if not found:
        raise BadInput(DATASET_PATH, f"{where} has no messages, which {TURNS} divides", REMEDY)
    return found

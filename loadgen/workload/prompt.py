"""Prompts: what one request asks, how many tokens it has and wants, and what it says of when it is due."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import orjson

from loadgen.core.record import UNPLANNED as UNPLANNED

HOLE: Final = b"\xff"  # a byte that no UTF-8 has, so that nothing in a body is mistaken for it
# As the `content` of a message: what the server has answered in this session, the first hole for its first turn.
ANSWER: Final = orjson.Fragment(b'"' + HOLE + b'"')


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question, with its size known before it is sent.

    When it is due, the arrival process of the run says, unless the prompt does.

    Attributes:
        text: The user's message (chat) or the prompt itself (completions).
        input_tokens: Tokens of `text` by the data set's tokenizer, without any chat template; UNPLANNED where ANSWER
            is part of it, or there is no tokenizer.
        output_tokens: Tokens wanted in the answer (sent as the maximum).
        source: Where it comes from, stable between runs: a row id or "name/seed/index".
        messages: What a chat is sent in place of one message of `text`, each with `role` and `content`, which may be
            ANSWER: the body then repeats what the server has answered to the turns before.
        server_tokens: Tokens that the server is expected to count, those of its chat template included; None where that
            is not known.
        due_ns: When it is due, ns from the start of the run, as a trace says; None: the arrival process says.
        follows: Whether it is the next turn of the session of the prompt right before it, and due only
            after that one has been answered.
        think_ns: How long after the end of that answer, ns.
    """

    text: str
    input_tokens: int
    output_tokens: int
    source: str
    messages: tuple[dict[str, Any], ...] = ()
    server_tokens: int | None = None
    due_ns: int | None = None
    follows: bool = False
    think_ns: int = 0


class Dataset(Protocol):
    """A seeded, reproducible source of prompts; the same for any number of workers."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield exactly `count` prompts, always the same ones in the same order."""

    def provenance(self) -> dict[str, Any]:
        """Say what was read and how, as JSON: name, rule, seeds, file and tokenizer hashes."""


@runtime_checkable
class Continued(Dataset, Protocol):
    """A data set that has more prompts than a run asks: for warm-ups, and for a closed loop that time alone bounds."""

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield what comes after `prompts(count)`, always the same prompts, as long as there are any."""


@runtime_checkable
class Sessions(Dataset, Protocol):
    """A data set of which some prompts follow others: a run that time alone bounds asks for so many sessions."""

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of exactly `count` sessions, each session's turns in a row."""


@runtime_checkable
class Timed(Dataset, Protocol):
    """A data set whose prompts say when they are due, such as a trace: a run that is not told how many sends them all.

    Attributes:
        requests: How many prompts it has.
    """

    requests: int

"""`Prompt`: the question of one request with its tokens, and the protocols of data sets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

import orjson

from loadgen.core.record import UNPLANNED as UNPLANNED

ANSWER_PLACEHOLDER: Final = b"\xff"  # a byte that no UTF-8 has, so that nothing in a body is mistaken for it
# As the `content` of a message: what the server has answered in this session, the first placeholder for its first turn.
ANSWER: Final = orjson.Fragment(b'"' + ANSWER_PLACEHOLDER + b'"')


Message = dict[str, Any]


def user_message(text: str) -> Message:
    """Return a message of the user, for a chat."""
    return {"role": "user", "content": text}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question, with its size known before it is sent.

    Attributes:
        text: The user's message (chat) or the prompt itself (completions).
        input_tokens: Tokens of `text` by the data set's tokenizer, without a chat template. UNPLANNED if ANSWER is part
            of it, or there is no tokenizer.
        output_tokens: Maximum tokens of the answer.
        source: The origin, stable between runs: a row id or "name/seed/index".
        messages: The messages of a chat, in place of one message of `text`, each with `role` and `content`. The content
            may be ANSWER: the body then repeats the server's answer to an earlier turn: those of the conversation that
            the first prompt of `after` belongs to, in order.
        server_tokens: Expected input tokens by the server's count, with its chat template; None if unknown.
        due_ns: Due time in ns from the start of the run, from a trace; None: the arrival process of the run decides.
        after: How many prompts back those lie that have to be answered before it is due, all of its session, which is a
            row of prompts; (1,) for the next turn of a conversation. Empty: it is the first of its session.
        think_ns: Time from the end of the last of those answers until it is due, ns.
        texts: Several texts of one request, in place of `text`: the inputs of embeddings, or a query and documents.
        token_ids: The tokens of `text`, to be sent in its place; empty, and for a chat: the text is sent.
        fields: Further fields of the body of its request, over those of the run: tools, a JSON schema.
        class_number: The class that its request is in, from 0; a run with classes sets it.
        unsalted: The content before a salt was put into it, which identifies the prompt; empty: it has no salt.
    """

    text: str
    input_tokens: int
    output_tokens: int
    source: str
    messages: tuple[dict[str, Any], ...] = ()
    server_tokens: int | None = None
    due_ns: int | None = None
    after: tuple[int, ...] = ()
    think_ns: int = 0
    texts: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict, hash=False)
    class_number: int = 0
    unsalted: bytes = b""

    @property
    def follows(self) -> bool:
        """Whether it is due after others of its session; else it is the first of a session, or a request alone."""
        return bool(self.after)


@runtime_checkable
class Dataset(Protocol):
    """A seeded, reproducible source of prompts, the same for any number of workers."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield exactly `count` prompts, the same in every call."""

    def provenance(self) -> dict[str, Any]:
        """Return the origin of the prompts as JSON: name, rule, seeds, hashes of file and tokenizer."""


@runtime_checkable
class Continued(Dataset, Protocol):
    """A data set with further prompts: for warm-ups, and for a closed loop that only a duration ends."""

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts after `prompts(count)`, the same in every call, until there are no more."""


@runtime_checkable
class Sessions(Dataset, Protocol):
    """A data set whose prompts form sessions: a run that only a duration ends asks for a number of sessions."""

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of exactly `count` sessions, each after those that it follows."""


@runtime_checkable
class Timed(Dataset, Protocol):
    """A data set with due times, such as a trace. Without a count, a run sends all its prompts.

    Attributes:
        requests: The number of prompts.
    """

    requests: int


@runtime_checkable
class Prefixed(Dataset, Protocol):
    """A data set whose prompts begin with one of a few prefixes."""

    def prefix_prompts(self) -> Iterator[Prompt]:
        """Yield a prompt of each distinct prefix alone; nothing if the prompts have none in common."""

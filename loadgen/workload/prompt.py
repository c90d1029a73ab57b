"""`Prompt`: the question of one request with its tokens, and the protocols of data sets.

`PromptDigest` is the hash of the prompts of a run, to compare runs; the mark of a prompt counts
repeated ones. `SessionOrder` checks, while the prompts are made, which prompts follow which;
`SessionGraph` knows it of requests.
"""

import hashlib
from array import array
from collections.abc import Container, Iterator
from itertools import accumulate
from typing import Any, Final, Protocol, runtime_checkable

import orjson
from msgspec import Struct

from loadgen.core.record import UNPLANNED as UNPLANNED
from loadgen.errors import BadInput, setting

DATASET_NAME = setting.dataset_name
ANSWER_PLACEHOLDER: Final = (
    b"\xff"  # a byte that no UTF-8 has, so that nothing in a body is mistaken for it
)
# As the `content` of a message: what the server has answered in this session, the first placeholder
# for its first turn.
ANSWER: Final = orjson.Fragment(b'"' + ANSWER_PLACEHOLDER + b'"')
Message = dict[str, Any]


def user_message(text: str) -> Message:
    """Return a message of the user, for a chat."""
    return {"role": "user", "content": text}


class Prompt(Struct, frozen=True):
    """One question, with its size known before it is sent.

    Attributes:
        text: The user's message (chat) or the prompt itself (completions).
        input_tokens: Tokens of `text` by the data set's tokenizer, without a chat template.
            UNPLANNED if ANSWER is part of it, or there is no tokenizer.
        output_tokens: Maximum tokens of the answer.
        source: The origin, stable between runs: a row id or "name/seed/index".
        messages: The messages of a chat, in place of one message of `text`, each with `role` and
            `content`. The content may be ANSWER: the body then repeats the server's answer to an
            earlier turn: those of the conversation that the first prompt of `after` belongs to, in
            order.
        server_tokens: Expected input tokens by the server's count, with its chat template; None if
            unknown.
        due_ns: Due time in ns from the start of the run, from a trace; None: the arrival process of
            the run decides.
        after: How many prompts back those lie that have to be answered before it is due, all of its
            session, which is a row of prompts; (1,) for the next turn of a conversation. Empty: it
            is the first of its session.
        think_ns: Time from the end of the last of those answers until it is due, ns.
        texts: Several texts of one request, in place of `text`: the inputs of embeddings, or a
            query and documents.
        token_ids: The tokens of `text`, to be sent in its place; empty, and for a chat: the text is
            sent.
        fields: Further fields of the body of its request, over those of the run: tools, a JSON
            schema.
        verbatim: Whether `fields` are the rest of a recorded body, its maximum of tokens included:
            the run adds none.
        class_number: The class that its request is in, from 0; a run with classes sets it.
        unsalted: The content before a salt was put into it, which identifies the prompt; empty: it
            has no salt.
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
    fields: dict[str, Any] = {}
    verbatim: bool = False
    class_number: int = 0
    unsalted: bytes = b""

    def __hash__(self) -> int:
        return hash((self.source, self.text))  # `fields` and messages have no hash

    @property
    def follows(self) -> bool:
        """Whether it is due after others of its session; else it is the first of a session, or a
        request alone.
        """
        return bool(self.after)


@runtime_checkable
class Dataset(Protocol):
    """A seeded, reproducible source of prompts, the same for any number of workers."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield exactly `count` prompts, the same in every call."""

    def provenance(self) -> dict[str, Any]:
        """Return the origin of the prompts as JSON: name, rule, seeds, hashes of file and
        tokenizer.
        """


@runtime_checkable
class Continued(Dataset, Protocol):
    """A data set with further prompts: for warm-ups, and for a closed loop that only a duration
    ends.
    """

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts after `prompts(count)`, the same in every call, until there are no
        more.
        """


@runtime_checkable
class Sessions(Dataset, Protocol):
    """A data set whose prompts form sessions: a run that only a duration ends asks for a number
    of sessions.
    """

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
        """Yield a prompt of each distinct prefix alone; nothing if the prompts have none in
        common.
        """


class PromptDigest:
    """Hash of prompts that are added in the order of sending, and the number of distinct ones.

    The hash covers text or messages, the fields of its own, and the output tokens. It does not
    cover source, tokenizer, model, times and salt.
    """

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._marks = array("q")  # 64-bit hashes: among 50 million, two collide once in 10,000 runs

    def add(self, prompt: Prompt) -> None:
        """Add the next prompt."""
        content = content_of(prompt)
        self._sha256.update(b"[%b,%d]\n" % (content, prompt.output_tokens))
        self._marks.append(hash(content))

    def marks(self) -> set[int]:
        """Return the distinct marks of the prompts so far, as `prompt_mark` returns them."""
        return set(self._marks)

    def count_marked(self, marks: Container[int]) -> int:
        """Count the prompts with one of these marks."""
        return sum(mark in marks for mark in self._marks)

    @property
    def first_mark(self) -> int:
        """The mark of the first prompt."""
        return self._marks[0]

    @property
    def sha256(self) -> str:
        """SHA-256 in hex over a JSON line for each prompt, `[TEXT, TEXTS OR MESSAGES,
        OUTPUT_TOKENS]`.

        With fields of its own, these follow the text: `[TEXT, FIELDS, OUTPUT_TOKENS]`.
        """
        return self._sha256.hexdigest()

    @property
    def distinct(self) -> int:
        """The number of distinct prompts. Output tokens do not count."""
        import numpy as np  # a measuring process has none, and never asks

        # Np.unique would import numpy.ma.
        marks = np.sort(np.frombuffer(self._marks, dtype=np.int64))
        return len(marks[:1]) + int(np.count_nonzero(np.diff(marks)))


def prompt_mark(prompt: Prompt) -> int:
    """Return a 64-bit hash of what a prompt asks: its text or messages, and its fields."""
    return hash(content_of(prompt))


def content_of(prompt: Prompt) -> bytes:
    """Return what a prompt asks, without a salt: its text, texts or messages, and its fields, as
    JSON.
    """
    if prompt.unsalted:
        return prompt.unsalted
    content = orjson.dumps(prompt.messages or prompt.texts or prompt.text)
    return b"%b,%b" % (content, orjson.dumps(prompt.fields)) if prompt.fields else content


class SessionOrder(Struct):
    """Checks that each prompt follows prompts of its own session alone.

    Attributes:
        sessions: How many sessions have begun.
    """

    sessions: int = 0
    _prompts: int = 0  # of the last session

    def add(self, prompt: Prompt) -> None:
        """Check the next prompt.

        Raises:
            BadInput: It follows a prompt outside its session, or its think time is negative.
        """
        if not prompt.after:
            self.sessions += 1
            self._prompts = 1
            return
        if not self.sessions:
            remedy = "begin with a prompt that follows none"
            raise BadInput(
                DATASET_NAME, f"the first prompt follows another one ({prompt.source})", remedy
            )
        for back in prompt.after:
            if not 0 < back <= self._prompts:
                problem = (
                    f"{prompt.source}: follows the prompt {back} places before it, which is "
                    "not in its session"
                )
                raise BadInput(
                    DATASET_NAME,
                    problem,
                    f"name prompts from 1 to {self._prompts} places before it",
                )
        if len(set(prompt.after)) < len(prompt.after):
            raise BadInput(
                DATASET_NAME, f"{prompt.source}: follows one prompt twice", "name each prompt once"
            )
        if prompt.think_ns < 0:
            problem = f"{prompt.source}: the think time is {prompt.think_ns} ns"
            raise BadInput(DATASET_NAME, problem, "give 0 or more")
        self._prompts += 1


class SessionGraph:
    """Which requests follow which.

    A run that sends more requests than the store has rows repeats the rows; so do their sessions.

    Args:
        after: How many rows back those lie that each row follows, row by row.
        ends: Where the part of each row in `after` ends, ascending.
    """

    def __init__(self, after: "array[int]", ends: "array[int]") -> None:
        self._back, self._back_ends = after, ends
        counts = array("q", bytes(8 * len(ends)))  # followers of each row
        rows = array("q", (row for row in range(len(ends)) for _ in _part(after, ends, row)))
        for row, back in zip(rows, after, strict=True):
            counts[row - back] += 1
        self._ahead, self._ahead_ends = (
            array("q", bytes(8 * len(after))),
            array("q", accumulate(counts)),
        )
        for row, back in zip(rows, after, strict=True):
            counts[row - back] -= 1
            self._ahead[self._ahead_ends[row - back] - 1 - counts[row - back]] = back

    def predecessors(self, index: int) -> list[int]:
        """Return the numbers of the requests that request `index` follows, in the order of its
        prompt's `after`.
        """
        return [
            index - rows
            for rows in _part(self._back, self._back_ends, index % len(self._back_ends))
        ]

    def followers(self, index: int) -> list[int]:
        """Return the numbers of the requests that follow request `index`, ascending."""
        return [
            index + rows
            for rows in _part(self._ahead, self._ahead_ends, index % len(self._ahead_ends))
        ]


def _part(values: "array[int]", ends: "array[int]", row: int) -> "array[int]":
    return values[ends[row - 1] if row else 0 : ends[row]]

"""Parsers of a streamed event and of an answer in one piece: the definition that the compiled
scanners must match.

Embeddings and pooling answer with a list under `data`, rerank with one under `results`. A text in
one piece has the form of an event that says everything, with `message` for `delta`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import (
    CHOICE,
    CONTENT,
    CUMULATIVE,
    EMPTY,
    FINISH,
    OLD_REASONING,
    OTHER,
    REASONING,
    ROLE,
    TOKENS,
    TOOL,
    USAGE,
)
from loadgen.core.json_fields import (
    MAX_TOKENS,
    count_of,
    items_of,
    object_of,
    text_of,
    to_json,
    word_of,
)

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NON_FINITE = re.compile(rb"NaN|Infinity")
ABORTED = "abort"  # the finish reason of an answer of /generate that the server gave up


def parse(payload: bytes, dialect: Dialect | None = None) -> Delta:
    """Parse the payload of one event.

    Args:
        payload: The data of the event, in UTF-8.
        dialect: That of the stream; None: its events are those of chat completions, completions or
            /generate.

    Raises:
        ValueError: It is not a JSON object, or its members have types that the API does not have.
    """
    return delta_of(*loads(payload), dialect)


def delta_of(event: Any, has_nan: bool, dialect: Dialect | None = None) -> Delta:
    """Read the facts of one event.

    Args:
        event: Its value.
        has_nan: Whether it holds NaN or an infinity.
        dialect: As that of `parse`.

    Raises:
        ValueError: As `parse`.
    """
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    if event.get("error") is not None or event.get("object") == "error":
        return Delta(error=to_json(event.get("error") or event))
    if dialect is not None:
        return replace(_in_dialect(event, dialect), has_nan=has_nan)
    if event.get("meta_info") is not None and "choices" not in event:
        return _cumulative(event, has_nan)
    kinds = 0
    says = 0
    tokens = -1
    texts = list[str]()
    answers = list[str]()
    finish_reason = None
    matched_stop: int | str | None = None
    for choice in items_of(event, "choices"):
        if not isinstance(choice, dict):
            raise ValueError("a choice is not an object")
        _refuse_further(choice)
        for kind, text in _texts(choice):
            kinds |= kind
            texts.append(text)
            if kind == CONTENT:
                answers.append(text)
        says |= _says(choice)
        count = _tokens(choice)
        tokens = tokens if count is None else max(tokens, 0) + count
        finish_reason = word_of(choice, "finish_reason") or finish_reason
        stop = _stop(choice)
        matched_stop = matched_stop if stop is None else stop
    usage = object_of(event, "usage")
    says |= FINISH * (finish_reason is not None) | USAGE * (event.get("usage") is not None)
    return Delta(
        kinds,
        says,
        tokens,
        "".join(texts),
        "".join(answers),
        finish_reason,
        matched_stop,
        count_of(usage, "prompt_tokens"),
        count_of(usage, "completion_tokens"),
        count_of(object_of(usage, "prompt_tokens_details"), "cached_tokens"),
        _reasoning(usage),
        has_nan,
    )


@dataclass(frozen=True, slots=True)
class PooledAnswer:
    """The facts of an answer that is no stream.

    Attributes:
        results: How many embeddings or scores it has.
        prompt_tokens: The input tokens by its usage, `total_tokens` where it has no others; -1: it
            gives none.
        cached_tokens: Those of them that came from a cache; -1: it does not say.
        has_nan: Whether it holds NaN or an infinity, which are not JSON.
        error: An error object in place of the answer, as JSON text.
    """

    results: int = 0
    prompt_tokens: int = -1
    cached_tokens: int = -1
    has_nan: bool = False
    error: str | None = None


def parse_pooled(body: bytes) -> PooledAnswer:
    """Parse the body of an answer.

    Raises:
        ValueError: It is not a JSON object with a list of results, or its usage has types that the
            API does not have.
    """
    event = parse(body)  # errors and usage are those of any other API
    if event.error is not None:
        return PooledAnswer(error=event.error)
    answer, has_nan = loads(body)
    results = answer.get("data", answer.get("results"))
    if not isinstance(results, list):
        raise ValueError("neither data nor results is a list")
    prompt_tokens = event.prompt_tokens
    if prompt_tokens < 0:
        prompt_tokens = count_of(answer.get("usage") or {}, "total_tokens")
    return PooledAnswer(len(results), prompt_tokens, event.cached_tokens, has_nan)


def parse_text(body: bytes) -> Delta:
    """Parse the body of an answer that is a text.

    Raises:
        ValueError: It is not a JSON object, or its members have types that the API does not have.
    """
    answer, has_nan = loads(body)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if isinstance(choices, list):
        answer["choices"] = [
            choice | {"delta": choice.get("message")} if isinstance(choice, dict) else choice
            for choice in choices
        ]
    return delta_of(answer, has_nan)


def _in_dialect(event: dict[str, Any], dialect: Dialect) -> Delta:
    """Read an event by the description of its API."""
    name = event.get(dialect.type_key)
    name = name if isinstance(name, str) else ""
    where = dialect.texts.get(name)
    if any(event.get(key) is not None and event[key] is not False for key in dialect.decisive):
        return dialect.read(event)
    if where is None:
        return Delta() if name in dialect.silent else dialect.read(event)
    kinds = 0
    says = CHOICE
    texts = list[str]()
    answers = list[str]()
    for path, flags in where.items():
        *inner, last = path.split(".")
        holder = event
        for key in inner:
            holder = object_of(holder, key)
        text = text_of(holder, last)
        kind = flags & TOKENS
        if holder.get(last) is not None:
            says |= flags & ~TOKENS | EMPTY * (text == "" and kind == CONTENT)
        if text:
            kinds |= kind
            texts.append(text)
            answers += [text] if kind == CONTENT else []
    return Delta(kinds, says, text="".join(texts), answer="".join(answers))


def _cumulative(event: dict[str, Any], has_nan: bool) -> Delta:
    """Read an event of SGLang's /generate, whose text and counts are those of the answer so far."""
    _refuse_further(event)
    meta = object_of(event, "meta_info")
    text = text_of(event, "text")
    finish = object_of(meta, "finish_reason")
    reason = word_of(finish, "type")
    if reason == ABORTED:
        return Delta(error=to_json(finish))
    says = (
        CHOICE
        | USAGE
        | CUMULATIVE
        | FINISH * (reason is not None)
        | EMPTY * (event.get("text") == "")
    )
    return Delta(
        CONTENT * bool(text),
        says,
        text=text,
        answer=text,
        finish_reason=reason,
        matched_stop=_stop({"matched_stop": finish.get("matched")}),
        prompt_tokens=count_of(meta, "prompt_tokens"),
        completion_tokens=count_of(meta, "completion_tokens"),
        cached_tokens=count_of(meta, "cached_tokens"),
        has_nan=has_nan,
    )


def loads(payload: bytes) -> tuple[Any, bool]:
    """Return the payload's value, and whether it holds NaN or an infinity."""
    try:
        return orjson.loads(payload), False
    except orjson.JSONDecodeError:
        if not SURROGATE.search(payload) and not _NON_FINITE.search(payload):
            raise
    # Half a surrogate pair is JSON, and some servers send it when they cut a character in two;
    # orjson refuses it. Servers in Python write NaN for broken logprobs; the answer is read all the
    # same.
    non_finite: list[float] = []

    def constant(word: str) -> float:
        non_finite.append(float(word))
        return non_finite[-1]

    try:
        return json.loads(payload.decode(), parse_constant=constant), bool(non_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_further(choice: dict[str, Any]) -> None:
    """Raise ValueError for any choice but the first: gaps between tokens of several answers
    measure nothing.
    """
    index = choice.get("index")
    if type(index) is int and index > 0:
        raise ValueError(f"choice {index} of several: ask for one answer a request")


def _stop(choice: dict[str, Any]) -> int | str | None:
    """Return the token id or stop word that ended the choice; None if it is missing or of
    another type.
    """
    for key in ("matched_stop", "stop_reason"):
        stop = choice.get(key)
        if isinstance(stop, str) and stop:
            return stop.encode(errors="replace").decode()
        if type(stop) is int and abs(stop) <= MAX_TOKENS:
            return stop
    return None


def _texts(choice: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the texts that bear tokens with the kind of each."""
    delta = object_of(choice, "delta")
    texts = [(REASONING, text_of(delta, key)) for key in ("reasoning", "reasoning_content")]
    texts += [
        *_content(delta),
        (CONTENT, text_of(choice, "text")),
        (OTHER, text_of(delta, "refusal")),
    ]
    texts += [(OTHER, _arguments(call)) for call in items_of(delta, "tool_calls")]
    return ((kind, text) for kind, text in texts if text)


def _content(delta: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the content: a text, or a list of parts of which some may be thoughts (Mistral)."""
    if not isinstance(delta.get("content"), list):
        yield CONTENT, text_of(delta, "content")
        return
    for part in _objects(delta, "content"):
        yield CONTENT, text_of(part, "text")
        if isinstance(part.get("thinking"), list):
            yield from (
                (REASONING, text_of(thought, "text")) for thought in _objects(part, "thinking")
            )
        else:
            yield REASONING, text_of(part, "thinking")


def _objects(holder: dict[str, Any], key: str) -> list[dict[str, Any]]:
    parts = items_of(holder, key)
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"a part of {key} is not an object")
    return parts


def _says(choice: dict[str, Any]) -> int:
    delta = object_of(choice, "delta")
    empty = delta.get("content") == "" or choice.get("text") == ""
    old = delta.get("reasoning_content") is not None
    tool = bool(delta.get("tool_calls"))
    return CHOICE | ROLE * ("role" in delta) | EMPTY * empty | OLD_REASONING * old | TOOL * tool


def _tokens(choice: dict[str, Any]) -> int | None:
    """Return the number of tokens that a choice says it holds; None if it does not, or in
    another type.
    """
    logprobs = choice.get("logprobs")
    logprobs = logprobs if isinstance(logprobs, dict) else {}
    # The logprobs of chat, and those of completions.
    for items in (choice.get("token_ids"), logprobs.get("content"), logprobs.get("tokens")):
        if isinstance(items, list):
            return len(items)
    return None


def _arguments(call: Any) -> str:
    if not isinstance(call, dict):
        raise ValueError("a tool call is not an object")
    return text_of(object_of(call, "function"), "arguments")


def _reasoning(usage: dict[str, Any]) -> int:
    """Return the reasoning tokens of a usage object; -1 if it has none, or in another type."""
    details = usage.get("completion_tokens_details")
    try:
        return count_of(details, "reasoning_tokens") if isinstance(details, dict) else -1
    except ValueError:
        return -1

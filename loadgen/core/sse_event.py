"""What one streamed event says, read with a real JSON parser: the definition that the scanner must match."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from loadgen.core.event_flags import (
    CHOICE,
    CONTENT,
    EMPTY,
    FINISH,
    OLD_REASONING,
    OTHER,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
)

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
NO_NUMBER = re.compile(rb"NaN|Infinity")
MOST_TOKENS = 10**9  # a server that counts more of them in one answer is mistaken


@dataclass(frozen=True, slots=True)
class Delta:
    """The facts of one event.

    Attributes:
        kinds: Which kinds of token the event bears (CONTENT | REASONING | OTHER); 0 for role-only, empty,
            finish-only and usage-only events.
        says: What else it says: it has a CHOICE, names a ROLE, has a content or text that is EMPTY, a FINISH reason,
            an object of USAGE, a `reasoning_content` that is text (OLD_REASONING), the call of a TOOL.
        tokens: How many tokens it bears by its token ids, else by its logprobs; -1 where neither is told.
        text: What these tokens say.
        answer: What those of them say that are content.
        finish_reason: The server's word for why the answer ended, if this event says so.
        matched_stop: The stop word or the id of the token that ended it, as SGLang (`matched_stop`) and vLLM
            (`stop_reason`) tell; None where neither does.
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens: The server's own counts; -1 where not told.
        has_nan: Whether it holds a NaN or an infinity, which is no JSON: logits that are none.
        error: An error object inside the stream, as JSON text.
    """

    kinds: int = 0
    says: int = 0
    tokens: int = -1
    text: str = ""
    answer: str = ""
    finish_reason: str | None = None
    matched_stop: int | str | None = None
    prompt_tokens: int = -1
    completion_tokens: int = -1
    cached_tokens: int = -1
    reasoning_tokens: int = -1
    has_nan: bool = False
    error: str | None = None


def parse(payload: bytes) -> Delta:
    """Read one event's payload.

    Raises:
        ValueError: It is not a JSON object, or its parts have shapes the API does not know.
    """
    event, has_nan = _loads(payload)
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    if event.get("error") is not None or event.get("object") == "error":
        return Delta(error=_dumped(event.get("error") or event))
    kinds, says, tokens, texts, answers, finish_reason = 0, 0, -1, list[str](), list[str](), None
    matched_stop: int | str | None = None
    for choice in _list(event, "choices"):
        if not isinstance(choice, dict):
            raise ValueError("a choice is not an object")
        _refuse_further(choice)
        for kind, text in _texts(choice):
            kinds |= kind
            texts.append(text)
            if kind == CONTENT:
                answers.append(text)
        says |= _says(choice)
        told = _tokens(choice)
        tokens = tokens if told is None else max(tokens, 0) + told
        finish_reason = _text(choice, "finish_reason").encode(errors="replace").decode() or finish_reason
        stop = _stop(choice)
        matched_stop = matched_stop if stop is None else stop
    usage = _dict(event, "usage")
    says |= FINISH * (finish_reason is not None) | USAGE * (event.get("usage") is not None)
    return Delta(
        kinds,
        says,
        tokens,
        "".join(texts),
        "".join(answers),
        finish_reason,
        matched_stop,
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(_dict(usage, "prompt_tokens_details"), "cached_tokens"),
        _reasoning(usage),
        has_nan,
    )


def _loads(payload: bytes) -> tuple[Any, bool]:
    """The payload's value, and whether a NaN or an infinity stands in it."""
    try:
        return orjson.loads(payload), False
    except orjson.JSONDecodeError:
        if not SURROGATE.search(payload) and not NO_NUMBER.search(payload):
            raise
    # Half a surrogate pair is JSON, and what servers send that cut a character in two; orjson refuses it. NaN is what
    # Python's servers write of logprobs that are none: the answer is read all the same.
    odd: list[float] = []

    def constant(word: str) -> float:
        odd.append(float(word))
        return odd[-1]

    try:
        return json.loads(payload.decode(), parse_constant=constant), bool(odd)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_further(choice: dict[str, Any]) -> None:
    """Raise for any choice but the first: their tokens come side by side, and no gap between them is a pace."""
    index = choice.get("index")
    if type(index) is int and index > 0:
        raise ValueError(f"choice {index} of several: ask for one answer a request")


def _stop(choice: dict[str, Any]) -> int | str | None:
    """What ended the choice: a token id, or a stop word. A help: one of another shape says nothing."""
    for key in ("matched_stop", "stop_reason"):
        stop = choice.get(key)
        if isinstance(stop, str) and stop:
            return stop.encode(errors="replace").decode()
        if type(stop) is int and abs(stop) <= MOST_TOKENS:
            return stop
    return None


def _dumped(error: Any) -> str:
    try:
        return orjson.dumps(error).decode()
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return json.dumps(error)


def _texts(choice: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The texts that bear tokens, and the kind of each."""
    delta = _dict(choice, "delta")
    found = [(REASONING, _text(delta, key)) for key in ("reasoning", "reasoning_content")]
    found += [*_content(delta), (CONTENT, _text(choice, "text")), (OTHER, _text(delta, "refusal"))]
    found += [(OTHER, _arguments(call)) for call in _list(delta, "tool_calls")]
    return ((kind, text) for kind, text in found if text)


def _content(delta: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The content: a text, or a list of parts, some of which may be thoughts (Mistral's)."""
    if not isinstance(delta.get("content"), list):
        yield CONTENT, _text(delta, "content")
        return
    for part in _objects(delta, "content"):
        yield CONTENT, _text(part, "text")
        if isinstance(part.get("thinking"), list):
            yield from ((REASONING, _text(thought, "text")) for thought in _objects(part, "thinking"))
        else:
            yield REASONING, _text(part, "thinking")


def _objects(holder: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = _list(holder, key)
    if not all(isinstance(one, dict) for one in found):
        raise ValueError(f"a part of {key} is not an object")
    return found


def _says(choice: dict[str, Any]) -> int:
    delta = _dict(choice, "delta")
    empty = delta.get("content") == "" or choice.get("text") == ""
    old, tool = delta.get("reasoning_content") is not None, bool(delta.get("tool_calls"))
    return CHOICE | ROLE * ("role" in delta) | EMPTY * empty | OLD_REASONING * old | TOOL * tool


def _tokens(choice: dict[str, Any]) -> int | None:
    """How many tokens a choice says it holds. A help where it is there: one of another shape says nothing."""
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
    return _text(_dict(call, "function"), "arguments")


def _typed(holder: dict[str, Any], key: str, kind: type, empty: Any) -> Any:
    value = holder.get(key)
    if value is None:
        return empty
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} is no {kind.__name__}")
    return value


def _text(holder: dict[str, Any], key: str) -> str:
    return str(_typed(holder, key, str, ""))


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    return list(_typed(holder, key, list, []))


def _dict(holder: dict[str, Any], key: str) -> dict[str, Any]:
    return dict(_typed(holder, key, dict, {}))


def _reasoning(usage: dict[str, Any]) -> int:
    """How many of the tokens are reasoning. A help: one of another shape says nothing."""
    details = usage.get("completion_tokens_details")
    try:
        return _count(details, "reasoning_tokens") if isinstance(details, dict) else -1
    except ValueError:
        return -1


def _count(holder: dict[str, Any], key: str) -> int:
    """A count; -1 where it is not told. Some gateways write it as a float."""
    value = holder.get(key)
    if isinstance(value, float) and value.is_integer():
        holder = {key: int(value)}
    count = int(_typed(holder, key, int, -1))
    if key in holder and holder[key] is not None and not 0 <= count <= MOST_TOKENS:
        raise ValueError(f"{key} is {count}")
    return count

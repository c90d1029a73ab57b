"""Parser of one streamed event: the definition that the compiled scanner (c/json_scan.pxd) must match."""

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
    SO_FAR,
    TOOL,
    USAGE,
)

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NON_FINITE = re.compile(rb"NaN|Infinity")
ABORTED = "abort"  # the finish reason of an answer of /generate that the server gave up
MAX_TOKENS = 10**9  # a larger count for one answer is an error of the server


@dataclass(frozen=True, slots=True)
class Delta:
    """The facts that one event states.

    Attributes:
        kinds: The kinds of token that the event bears, a subset of TOKENS; 0 for role-only, empty, finish-only and
            usage-only events.
        says: Its other flags (event_flags.pxd).
        tokens: The number of its tokens by token ids, else by logprobs; -1: it has neither.
        text: The text of these tokens.
        answer: The text of those that are content.
        finish_reason: Why the answer ended, if this event says it.
        matched_stop: The stop word or token id that ended it, from SGLang's `matched_stop` or vLLM's `stop_reason`.
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens: The server's counts; -1: it gives none.
        has_nan: Whether it holds NaN or an infinity, which are not JSON: logprobs of a broken model.
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
    """Parse the payload of one event.

    Raises:
        ValueError: It is not a JSON object, or its members have types that the API does not have.
    """
    event, has_nan = _loads(payload)
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    if event.get("error") is not None or event.get("object") == "error":
        return Delta(error=_to_json(event.get("error") or event))
    if event.get("meta_info") is not None and "choices" not in event:
        return _so_far(event, has_nan)
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
        count = _tokens(choice)
        tokens = tokens if count is None else max(tokens, 0) + count
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


def _so_far(event: dict[str, Any], has_nan: bool) -> Delta:
    """Read an event of SGLang's /generate, whose text and counts are those of the answer so far."""
    _refuse_further(event)
    meta, text = _dict(event, "meta_info"), _text(event, "text")
    finish = _dict(meta, "finish_reason")
    reason = _text(finish, "type").encode(errors="replace").decode() or None
    if reason == ABORTED:
        return Delta(error=_to_json(finish))
    says = CHOICE | USAGE | SO_FAR | FINISH * (reason is not None) | EMPTY * (event.get("text") == "")
    return Delta(
        CONTENT * bool(text),
        says,
        text=text,
        answer=text,
        finish_reason=reason,
        matched_stop=_stop({"matched_stop": finish.get("matched")}),
        prompt_tokens=_count(meta, "prompt_tokens"),
        completion_tokens=_count(meta, "completion_tokens"),
        cached_tokens=_count(meta, "cached_tokens"),
        has_nan=has_nan,
    )


def _loads(payload: bytes) -> tuple[Any, bool]:
    """Return the payload's value, and whether it holds NaN or an infinity."""
    try:
        return orjson.loads(payload), False
    except orjson.JSONDecodeError:
        if not SURROGATE.search(payload) and not _NON_FINITE.search(payload):
            raise
    # Half a surrogate pair is JSON, and some servers send it when they cut a character in two; orjson refuses it.
    # Servers in Python write NaN for broken logprobs; the answer is read all the same.
    non_finite: list[float] = []

    def constant(word: str) -> float:
        non_finite.append(float(word))
        return non_finite[-1]

    try:
        return json.loads(payload.decode(), parse_constant=constant), bool(non_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_further(choice: dict[str, Any]) -> None:
    """Raise ValueError for any choice but the first: gaps between tokens of several answers measure nothing."""
    index = choice.get("index")
    if type(index) is int and index > 0:
        raise ValueError(f"choice {index} of several: ask for one answer a request")


def _stop(choice: dict[str, Any]) -> int | str | None:
    """Return the token id or stop word that ended the choice; None if it is missing or of another type."""
    for key in ("matched_stop", "stop_reason"):
        stop = choice.get(key)
        if isinstance(stop, str) and stop:
            return stop.encode(errors="replace").decode()
        if type(stop) is int and abs(stop) <= MAX_TOKENS:
            return stop
    return None


def _to_json(error: Any) -> str:
    try:
        return orjson.dumps(error).decode()
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return json.dumps(error)


def _texts(choice: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the texts that bear tokens with the kind of each."""
    delta = _dict(choice, "delta")
    texts = [(REASONING, _text(delta, key)) for key in ("reasoning", "reasoning_content")]
    texts += [*_content(delta), (CONTENT, _text(choice, "text")), (OTHER, _text(delta, "refusal"))]
    texts += [(OTHER, _arguments(call)) for call in _list(delta, "tool_calls")]
    return ((kind, text) for kind, text in texts if text)


def _content(delta: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the content: a text, or a list of parts of which some may be thoughts (Mistral)."""
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
    parts = _list(holder, key)
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"a part of {key} is not an object")
    return parts


def _says(choice: dict[str, Any]) -> int:
    delta = _dict(choice, "delta")
    empty = delta.get("content") == "" or choice.get("text") == ""
    old, tool = delta.get("reasoning_content") is not None, bool(delta.get("tool_calls"))
    return CHOICE | ROLE * ("role" in delta) | EMPTY * empty | OLD_REASONING * old | TOOL * tool


def _tokens(choice: dict[str, Any]) -> int | None:
    """Return the number of tokens that a choice says it holds; None if it does not, or in another type."""
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
    """Return the reasoning tokens of a usage object; -1 if it has none, or in another type."""
    details = usage.get("completion_tokens_details")
    try:
        return _count(details, "reasoning_tokens") if isinstance(details, dict) else -1
    except ValueError:
        return -1


def _count(holder: dict[str, Any], key: str) -> int:
    """Return a count; -1 if it is missing. Some gateways write it as a float."""
    value = holder.get(key)
    if isinstance(value, float) and value.is_integer():
        holder = {key: int(value)}
    count = int(_typed(holder, key, int, -1))
    if key in holder and holder[key] is not None and not 0 <= count <= MAX_TOKENS:
        raise ValueError(f"{key} is {count}")
    return count

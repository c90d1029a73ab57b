"""Parsers of a streamed event and of an answer in one piece: the definition that the compiled
scanners must match.

A text in one piece has the form of an event that says everything, with `message` for `delta`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import structs

from loadgen.core import server_times, token_usage
from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import (
    BARE,
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
from loadgen.core.finish_reasons import NO_REASON
from loadgen.core.json_fields import (
    MAX_TOKENS,
    count_of,
    items_of,
    object_of,
    text_of,
    to_json,
    word_of,
)
from loadgen.core.server_times import Times

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NON_FINITE = re.compile(rb"NaN|Infinity")
# The keys of a delta that hold text, in the order in which a text counts, and its kind.
KINDS_OF_KEYS = {
    "reasoning": REASONING,
    "reasoning_content": REASONING,
    "thinking": REASONING,
    "reasoning_details": REASONING,
    "content": CONTENT,
    "text": CONTENT,
    "refusal": OTHER,
    "tool_calls": OTHER,
    "function_call": OTHER,
    "audio": CONTENT,
}
ORDER = tuple(key for key in KINDS_OF_KEYS if key != "text")
UNKNOWN_TEXT = "delta."  # before the name of a key with text that is none of them
OF_ANY_FORM = ("thinking", "reasoning_details", "function_call", "audio")
# In an object: where its text is.
TEXT_KEYS = ("name", "arguments", "text", "summary", "thinking", "content", "transcript")
# Keys of a delta that say something else.
NO_TEXT = frozenset(
    (
        *("role", "id", "name", "type", "index", "object", "model", "status", "error"),
        *("tool_call_id", "annotations", "citations", "metadata", "provider_specific_fields"),
    )
)
UNKNOWN_EVENT = "event"  # the name of one that says nothing that a rule takes
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
    if (error := _error_of(event)) is not None:
        return Delta(error=error)
    if dialect is not None:
        return structs.replace(_in_dialect(event, dialect), has_nan=has_nan)
    if event.get("meta_info") is not None and "choices" not in event:
        return _cumulative(event, has_nan)
    kinds = 0
    says = 0
    tokens = -1
    texts = list[str]()
    answers = list[str]()
    unknown = list[str]()
    finish_reason = None
    matched_stop: int | str | None = None
    for choice in items_of(event, "choices"):
        if not isinstance(choice, dict):
            raise ValueError("a choice is not an object")
        _refuse_further(choice)
        for kind, key, text in streamed_texts(choice):
            kinds |= kind
            texts.append(text)
            if kind == CONTENT:
                answers.append(text)
            if key not in KINDS_OF_KEYS:
                unknown.append(UNKNOWN_TEXT + key)
        says |= _says(choice)
        count = _tokens(choice)
        tokens = tokens if count is None else max(tokens, 0) + count
        finish_reason = reason_of(choice, "finish_reason") or finish_reason
        stop = _stop(choice)
        matched_stop = matched_stop if stop is None else stop
    usage = token_usage.find(event)
    if usage is None and "choices" not in event:
        return _of_unknown(event, has_nan)
    says |= FINISH * (finish_reason is not None) | USAGE * (usage is not None)
    if kinds or (says & (EMPTY | FINISH) and not says & ROLE):
        says &= ~BARE
    counts = token_usage.counts(usage or {})
    return Delta(
        kinds,
        says,
        tokens,
        "".join(texts),
        "".join(answers),
        finish_reason,
        matched_stop,
        counts["prompt_tokens"],
        counts["completion_tokens"],
        counts["cached_tokens"],
        counts["reasoning_tokens"],
        has_nan,
        total_tokens=counts["total_tokens"],
        unknown=tuple(unknown),
        times=_times(event, usage, says),
    )


def _times(event: dict[str, Any], usage: dict[str, Any] | None, says: int) -> Times | None:
    """Return what an event that ends an answer says of the server's time; None: nothing."""
    if says & CHOICE and not says & FINISH:
        return None
    return server_times.in_event(event, usage)


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
    is_decisive = any(
        event.get(key) is not None and event[key] is not False for key in dialect.decisive
    )
    if is_decisive or (where is None and name not in dialect.silent):
        delta = dialect.read(event)
        if delta == Delta():
            return _of_unknown(event)
        times = _times(event, None, delta.says)
        if times is None and isinstance(event.get("response"), dict):  # that of Responses
            times = _times(event["response"], None, delta.says)
        return structs.replace(delta, times=times)
    if where is None:
        return Delta()
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


def _of_unknown(event: dict[str, Any], has_nan: bool = False) -> Delta:
    """Read an event that says nothing that a rule takes: an error by its type, or an event to be
    named.
    """
    if event.get("type") == "error":
        return Delta(error=to_json(event))
    return Delta(has_nan=has_nan, unknown=(UNKNOWN_EVENT,) if event else ())


def _cumulative(event: dict[str, Any], has_nan: bool) -> Delta:
    """Read an event of SGLang's /generate, whose text and counts are those of the answer so far."""
    _refuse_further(event)
    meta = object_of(event, "meta_info")
    text = text_of(event, "text")
    finish = object_of(meta, "finish_reason")
    reason = reason_of(finish, "type")
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
        times=_times(event, None, says),
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


def _error_of(event: dict[str, Any]) -> str | None:
    """Return an error of an event, one of its choices or `x_groq`, as JSON text; None: it has
    none.
    """
    if event.get("error") is not None or event.get("object") == "error":
        return to_json(event.get("error") or event)
    choices = event.get("choices")
    choices = choices if isinstance(choices, list) else []
    deltas = [choice.get("delta") for choice in choices if isinstance(choice, dict)]
    for holder in (event.get("x_groq"), *choices, *deltas):
        if isinstance(holder, dict) and holder.get("error") is not None:
            return to_json(holder["error"])
    return None


def streamed_texts(choice: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Yield the texts that bear tokens: the kind of each, the key that holds it, and the text.

    A text that a choice has under two keys is yielded once.
    """
    delta = object_of(choice, "delta")
    pairs = [(key, list(_texts_at(delta, key))) for key in ORDER if key in delta]
    pairs.append(("text", [(CONTENT, text_of(choice, "text"))]))
    others = [key for key in delta if key not in KINDS_OF_KEYS and key not in NO_TEXT]
    pairs += [(key, [(OTHER, _any_text(delta[key]))]) for key in others]
    before = set[tuple[int, str]]()
    for key, texts in pairs:
        whole = "".join(text for _, text in texts)
        kind = KINDS_OF_KEYS.get(key, OTHER)
        if (kind, whole) in before or (kind == OTHER and whole in {text for _, text in before}):
            continue
        before.add((kind, whole))
        yield from ((kind, key, text) for kind, text in texts if text)


def _texts_at(delta: dict[str, Any], key: str) -> Iterator[tuple[int, str]]:
    """Yield the texts at a key that a rule knows, with the kind of each."""
    if key == "content":
        yield from _content(delta)
    elif key == "tool_calls":
        yield from ((OTHER, _called(call)) for call in items_of(delta, key))
    elif key in OF_ANY_FORM:
        yield KINDS_OF_KEYS[key], _any_text(delta[key])
    else:
        yield KINDS_OF_KEYS[key], text_of(delta, key)


def _any_text(value: Any) -> str:
    """Return a text, or the texts of an object or of a list of them; empty: it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_any_text(item) for item in value if isinstance(item, str | dict))
    if isinstance(value, dict):
        return "".join(value[key] for key in TEXT_KEYS if isinstance(value.get(key), str))
    return ""


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
    tool = bool(delta.get("tool_calls") or delta.get("function_call"))
    bare = choice.get("delta") is not None and delta.get("role") is None
    says = CHOICE | ROLE * ("role" in delta) | EMPTY * empty | BARE * bare
    return says | OLD_REASONING * old | TOOL * tool


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


def _called(call: Any) -> str:
    """Return the name and the arguments of a tool call, as far as an event has them."""
    if not isinstance(call, dict):
        raise ValueError("a tool call is not an object")
    function = object_of(call, "function")
    return text_of(function, "name") + text_of(function, "arguments")


def reason_of(holder: dict[str, Any], key: str) -> str | None:
    """Return a finish reason; None where there is none, also as the word null."""
    reason = word_of(holder, key)
    return None if reason is None or reason.lower() in NO_REASON else reason

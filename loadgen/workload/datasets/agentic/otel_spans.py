"""Spans of OpenTelemetry's GenAI conventions, as OTLP JSON: a line for each export, as the
collector writes files.

Calls are the spans whose `gen_ai.operation.name` is chat, text_completion or generate_content. A
session is a `gen_ai.conversation.id`, or else a trace. Sources: the conventions of GenAI spans with
their schema of `gen_ai.input.messages`,
https://github.com/open-telemetry/semantic-conventions-genai; the JSON of opentelemetry-proto.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.agentic.recorded_session import (
    JsonRow,
    RecordedCall,
    RecordedSession,
    direct_predecessors,
    read_rows,
)

REMEDY = "give spans of OpenTelemetry as OTLP JSON, with gen_ai attributes"
OPERATIONS = ("chat", "text_completion", "generate_content")
VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


def is_row(fields: dict[str, Any]) -> bool:
    """Return whether an object is an export of spans."""
    return "resourceSpans" in fields


def sessions(path: Path) -> Iterator[RecordedSession]:
    """Yield the sessions of a file, whose spans may be mixed.

    Raises:
        BadInput: The file cannot be read, or a span is invalid.
    """
    calls_by_session = dict[str, list[tuple[float, float, RecordedCall]]]()
    for row in read_rows(path, REMEDY):
        for resource in row.rows("resourceSpans", optional=True):
            for scope in resource.rows("scopeSpans", optional=True):
                for span in scope.rows("spans", optional=True):
                    pairs = [
                        (row.text("key"), row.fields.get("value"))
                        for row in span.rows("attributes", optional=True)
                    ]
                    attributes = {
                        name: _value(span, name, value)
                        for name, value in pairs
                        if isinstance(value, dict)
                    }
                    if attributes.get("gen_ai.operation.name") in OPERATIONS:
                        name = str(attributes.get("gen_ai.conversation.id") or span.text("traceId"))
                        calls_by_session.setdefault(name, []).append(
                            (*_times(span), _call(span, attributes))
                        )
    for name, calls in calls_by_session.items():
        # Each call waits for those that had ended when it began.
        ordered = sorted(calls, key=lambda item: item[0])
        waited_for = direct_predecessors([(begin, end) for begin, end, _ in ordered])
        for number, ((begin, _, call), before) in enumerate(zip(ordered, waited_for, strict=True)):
            call.after = tuple(before or range(min(1, number)))  # there is one first call
            last_end_s = max((ordered[item][1] for item in call.after), default=begin)
            call.delay_s = max(0.0, begin - last_end_s) if number else 0.0
        yield RecordedSession(name, [call for _, _, call in ordered])


def _times(span: JsonRow) -> tuple[float, float]:
    """Return begin and end of a span, s."""
    times = []
    for name in ("startTimeUnixNano", "endTimeUnixNano"):
        value = span.fields.get(name)
        if not str(value).isdecimal():  # a 64-bit number is a text in OTLP JSON
            raise span.wrong(name, value, "a time in ns")
        times.append(int(str(value)) / NS_PER_S)
    if times[1] < times[0]:
        raise span.error("it ends before it begins")
    return times[0], times[1]


def _value(span: JsonRow, name: str, content: Any) -> Any:
    value: dict[str, Any] = span.of_kind(dict, name, content)
    if "arrayValue" in value:
        return [_value(span, name, item) for item in _values(span, name, value["arrayValue"])]
    if "kvlistValue" in value:
        pairs = [
            span.of_kind(dict, name, item) for item in _values(span, name, value["kvlistValue"])
        ]
        return {str(pair.get("key")): _value(span, name, pair.get("value")) for pair in pairs}
    plain = next((value[kind] for kind in VALUES if kind in value), None)
    # Int64 is a text there.
    return int(str(plain)) if "intValue" in value and str(plain).isdecimal() else plain


def _values(span: JsonRow, name: str, content: Any) -> list[Any]:
    values: list[Any] = span.of_kind(
        list, name, span.of_kind(dict, name, content).get("values", [])
    )
    return values


def _call(span: JsonRow, attributes: dict[str, Any]) -> RecordedCall:
    row = JsonRow(span.path, span.location, attributes)
    names = "gen_ai.usage.output_tokens", "gen_ai.request.max_tokens"
    output_tokens = (
        row.integer(*names) if any(attributes.get(name) is not None for name in names) else None
    )
    call = RecordedCall(span.location, output_tokens=output_tokens or None)
    instructions = _list(row, "gen_ai.system_instructions")
    system = _text(instructions)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in _list(row, "gen_ai.input.messages"):
        messages += _chat_messages(row, message)
    if messages:
        call.messages = tuple(messages)
        if tools := _list(row, "gen_ai.tool.definitions"):
            functions = []
            for tool in tools:
                if "function" in tool:
                    functions.append(tool)
                    continue
                function = {name: value for name, value in tool.items() if name != "type"}
                functions.append({"type": "function", "function": function})
            call.fields = {"tools": functions}
    else:
        call.input_tokens = max(row.integer("gen_ai.usage.input_tokens"), 1)
    return call


def _list(row: JsonRow, name: str) -> list[dict[str, Any]]:
    items = row.fields.get(name)
    if isinstance(items, str):
        try:
            items = orjson.loads(items)
        except orjson.JSONDecodeError as error:
            raise row.error(f"{name!r} is not JSON ({error})") from error
    items = row.of_kind(list, name, [] if items is None else items)
    return [row.of_kind(dict, name, item) for item in items]


def _chat_messages(row: JsonRow, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert a message with its parts to messages of a chat: each result of a tool is one of
    its own.
    """
    role, parts = message.get("role"), message.get("parts")
    if not isinstance(role, str) or not isinstance(parts, list):
        raise row.error("a message of 'gen_ai.input.messages' has no 'role' or no 'parts'")
    calls, results = list[dict[str, Any]](), list[dict[str, Any]]()
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call":
            function = {
                "name": str(part.get("name")),
                "arguments": _as_text(part.get("arguments", {})),
            }
            calls.append({"id": str(part.get("id")), "type": "function", "function": function})
        elif kind == "tool_call_response":
            content = _as_text(part.get("response", part.get("result", "")))
            results.append(
                {"role": "tool", "tool_call_id": str(part.get("id")), "content": content}
            )
        elif kind not in ("text", "reasoning"):
            remedy = "leave the session out: only texts and tools can be sent"
            raise row.error(f"a part of a message is {kind!r}", remedy)
    text = _text(parts)
    chat_message: dict[str, Any] = {"role": role, "content": text or None}
    if calls:
        chat_message["tool_calls"] = calls
    return ([chat_message] if text or calls else []) + results


def _text(parts: list[dict[str, Any]]) -> str:
    return "\n".join(str(part.get("content", "")) for part in parts if part.get("type") == "text")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()

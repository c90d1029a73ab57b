"""Spans of OpenTelemetry as recorded sessions: their order, their messages, and what is refused."""

import pytest

from loadgen.errors import BadInput
from loadgen.workload.prompt import UNPLANNED
from tests.helpers.recorded_agents import attribute, delays, export, order, said, span


def test_otel_spans_of_models_are_calls_in_the_order_of_their_times(recorded):
    lengths = {"usage__input_tokens": 30, "usage__output_tokens": 4}
    (session,) = recorded(
        export(span(8, 9, **lengths), span(3, 6, **lengths), span(2, 7, "t1", "invoke_agent")),
        export(span(0, 1, **lengths), span(2, 4, **lengths)),
    )
    assert (order(session), delays(session)) == ([(), (0,), (0,), (1, 2)], [0, 1, 2, 2])
    assert [(one.input_tokens, one.output_tokens) for one in session.calls] == [(30, 4)] * 4


def test_otel_messages_become_those_of_a_chat(recorded):
    called = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"at": "."}}
    messages = [
        said("user", {"type": "text", "content": "Fix it."}),
        said("assistant", {"type": "reasoning", "content": "hm"}, called),
        said("tool", {"type": "tool_call_response", "id": "c1", "response": ["a.py"]}),
    ]
    tools = [{"type": "function", "name": "ls", "description": "list", "parameters": {}}]
    instructions = [{"type": "text", "content": "You are an agent."}]
    found = {
        "input__messages": messages,
        "system_instructions": instructions,
        "tool__definitions": tools,
    }
    (session,) = recorded(export(span(0, 1, usage__output_tokens=4, **found)))
    (one,) = session.calls
    assert list(one.messages) == [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "ls", "arguments": '{"at":"."}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '["a.py"]'},
    ]
    function = {"name": "ls", "description": "list", "parameters": {}}
    assert one.fields == {"tools": [{"type": "function", "function": function}]}
    assert (one.input_tokens, one.output_tokens) == (UNPLANNED, 4)


def test_otel_sessions_are_conversations_or_traces(recorded):
    conversation = attribute("gen_ai.conversation.id", "talk")
    spans = [span(0, 1, "t1", usage__input_tokens=5), span(2, 3, "t2", usage__input_tokens=5)]
    assert [session.name for session in recorded(export(*spans))] == ["t1", "t2"]
    together = [one | {"attributes": [*one["attributes"], conversation]} for one in spans]
    assert [(session.name, len(session.calls)) for session in recorded(export(*together))] == [
        ("talk", 2)
    ]


def test_other_spans_may_have_no_attributes(recorded):
    bare = {"traceId": "t1", "startTimeUnixNano": "0", "endTimeUnixNano": "1"}
    (session,) = recorded(
        export(bare, span(0, 1, usage__input_tokens=5)),
        {"resourceSpans": [{"scopeSpans": [{}]}, {}]},
    )
    assert len(session.calls) == 1


def with_value(name, value):
    """A span whose attribute has a value in OTLP's own form."""
    one = span(0, 1, usage__input_tokens=5)
    return one | {"attributes": [*one["attributes"], {"key": name, "value": value}]}


def test_otel_attributes_may_be_lists_and_objects(recorded):
    text = {
        "kvlistValue": {
            "values": [
                {"key": "type", "value": {"stringValue": "text"}},
                {"key": "content", "value": {"stringValue": "Hi"}},
            ]
        }
    }
    message = {
        "kvlistValue": {
            "values": [
                {"key": "role", "value": {"stringValue": "user"}},
                {"key": "parts", "value": {"arrayValue": {"values": [text]}}},
            ]
        }
    }
    (session,) = recorded(
        export(with_value("gen_ai.input.messages", {"arrayValue": {"values": [message]}}))
    )
    assert session.calls[0].messages == ({"role": "user", "content": "Hi"},)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (
            with_value("x", {"arrayValue": {"values": [1]}}),
            r"spans\[0\]: 'x' is '1', not an object",
        ),
        (
            with_value("x", {"kvlistValue": {"values": [{"key": "a"}]}}),
            r"spans\[0\]: 'x' is missing",
        ),
        (with_value("x", {"kvlistValue": 3}), r"spans\[0\]: 'x' is '3', not an object"),
        (
            span(0, 1),
            r"line 1, resourceSpans\[0\], scopeSpans\[0\], spans\[0\]: "
            r"'gen_ai.usage.input_tokens' is missing",
        ),
        (span(5, 1, usage__input_tokens=5), "it ends before it begins"),
        (
            span(0, 1, usage__input_tokens=5) | {"endTimeUnixNano": None},
            "'endTimeUnixNano' is missing",
        ),
        (span(0, 1, input__messages=[{"role": "user"}]), "has no 'role' or no 'parts'"),
        (
            span(0, 1, input__messages=[said("user", {"type": "blob"})]),
            "a part of a message is 'blob'",
        ),
    ],
)
def test_otel_spans_that_cannot_be_sent_are_refused_with_their_place(recorded, broken, problem):
    with pytest.raises(BadInput, match=problem):
        recorded(export(broken))

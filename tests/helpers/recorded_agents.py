"""Rows of recorded sessions of agents in each format, and what a session of them is."""

import json


def order(session):
    return [call.after for call in session.calls]


def delays(session):
    return [round(call.delay_s, 6) for call in session.calls]


# -- Weka


def call(t, tokens, out, blocks, **more):
    return {"t": t, "type": "n", "model": "m", "in": tokens, "out": out, "hash_ids": blocks} | more


def weka(*requests, **changes):
    return {
        "id": "a",
        "models": ["m"],
        "block_size": 4,
        "hash_id_scope": "local",
        "requests": list(requests),
    } | changes


def subagent(t, *requests):
    about = {
        "agent_id": f"agent {t}",
        "subagent_type": "Explore",
        "status": "completed",
        "models": ["m"],
    }
    return {"t": t, "type": "subagent", "requests": list(requests)} | about


# -- MLPerf


CALLED = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]


def message(turn, role, conversation="c", **more):
    return {"conversation_id": conversation, "turn": turn, "role": role} | more


AGENT = [
    message(
        1,
        "user",
        content="Fix it.",
        system="You are an agent.",
        tools=[{"type": "function"}],
        max_new_tokens=70,
    ),
    message(2, "assistant", tool_calls=CALLED),
    message(
        3, "tool", tool_results=[{"tool_call_id": "c1", "content": "a.py"}], delay_seconds=1.25
    ),
    message(4, "assistant", content="Done."),
    message(5, "user", content="Thanks.", delay_seconds=3, max_new_tokens=9),
]


# -- TraceLab


def at(second):
    return f"2026-05-01T10:00:{second:06.3f}Z"


def tracelab(session, given, answered, total, prefix, out, **more):
    events = [
        {"event_type": "tool_result", "timestamp": at(given)},
        {"event_type": "text", "timestamp": at(answered)},
    ]
    row = {
        "session_id": session,
        "timing_events": events,
        "input_tokens_total": total,
        "prefix_tokens": prefix,
    }
    return row | {"output_tokens": out} | more


# -- OpenTelemetry


def attribute(name, value):
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": name, "value": {kind: str(value)}}


def span(begin, end, trace="t1", operation="chat", **attributes):
    given = {"gen_ai.operation.name": operation} | {
        "gen_ai." + name.replace("__", "."): value if isinstance(value, int) else json.dumps(value)
        for name, value in attributes.items()
    }
    times = {"startTimeUnixNano": str(begin * 10**9), "endTimeUnixNano": str(end * 10**9)}
    return {"traceId": trace, "attributes": [attribute(*pair) for pair in given.items()]} | times


def export(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def said(role, *parts):
    return {"role": role, "parts": list(parts)}

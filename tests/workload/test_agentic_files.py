"""Recorded sessions of agents: each format gives the calls, what each waited for, and for how long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.errors import BadInput
from loadgen.workload.datasets.agentic.agent_file import AgentFile
from loadgen.workload.datasets.agentic.recorded_session import ended_before
from loadgen.workload.prompt import UNPLANNED


@pytest.fixture
def read(tmp_path):
    """Reads a file with these rows, one a line."""

    def of(*rows, name="auto"):
        path = tmp_path / "sessions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return list(AgentFile(path, name).sessions())

    return of


def order(session):
    return [call.after for call in session.calls]


def delays(session):
    return [round(call.delay_s, 6) for call in session.calls]


# -- what times show


def test_calls_one_after_another_wait_for_the_one_before():
    assert ended_before([(0, 1), (1, 2), (3, 4)]) == [[], [0], [1]]


def test_calls_that_overlap_do_not_wait_for_each_other_and_the_next_waits_for_both():
    assert ended_before([(0, 1), (2, 5), (3, 4), (6, 7)]) == [[], [0], [0], [1, 2]]


def test_a_call_that_began_before_any_had_ended_waits_for_none():
    assert ended_before([(0, 3), (1, 2), (2.5, 4)]) == [[], [], [1]]


def test_calls_without_a_length_wait_for_the_last_one():
    assert ended_before([(0, 0), (0, 0), (5, 5)]) == [[], [0], [1]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25))
def test_what_is_waited_for_is_the_order_by_time_without_shortcuts(drawn):
    times = sorted((begin, begin + length) for begin, length in drawn)
    before = [{j for j in range(i) if times[j][1] <= times[i][0]} for i in range(len(times))]
    expected = [sorted(all_of - {k for j in all_of for k in before[j]}) for all_of in before]
    assert ended_before(times) == expected


# -- Weka


def call(t, tokens, out, blocks, **more):
    return {"t": t, "type": "n", "model": "m", "in": tokens, "out": out, "hash_ids": blocks} | more


def weka(*requests, **changes):
    return {"id": "a", "models": ["m"], "block_size": 4, "hash_id_scope": "local", "requests": list(requests)} | changes


def subagent(t, *requests):
    about = {"agent_id": f"agent {t}", "subagent_type": "Explore", "status": "completed", "models": ["m"]}
    return {"t": t, "type": "subagent", "requests": list(requests)} | about


def test_weka_calls_wait_for_each_other_with_recorded_pauses(read):
    (session,) = read(
        weka(
            call(0, 10, 5, [1, 2], api_time=2.0),
            call(5, 14, 6, [1, 2, 3], api_time=1.0),
            call(9, 18, 7, [1, 2, 3, 4], think_time=2.5),
        )
    )
    assert order(session) == [(), (0,), (1,)]
    assert delays(session) == [0, 3, 2.5]
    assert [(one.input_tokens, one.output_tokens) for one in session.calls] == [(10, 5), (14, 6), (18, 7)]
    assert [(one.blocks, one.sizes) for one in session.calls[:2]] == [([1, 2], [4, 4]), ([1, 2, 3], [4, 4, 4])]
    assert not session.is_global


def test_weka_subagents_begin_with_their_spawn_and_the_parent_waits_for_them(read):
    (session,) = read(
        weka(
            call(0, 10, 5, [1], api_time=1.0),
            subagent(2, call(2, 8, 2, [9], api_time=3.0), call(6, 8, 2, [9], api_time=1.0)),
            subagent(2.5, call(2.5, 8, 2, [8], api_time=1.5)),
            call(8, 12, 5, [1, 2], api_time=1.0),
        )
    )
    # In the order of their times: parent, first agent, second agent, first agent again, parent.
    assert order(session) == [(), (0,), (0,), (1,), (0, 2, 3)]
    assert delays(session) == [0, 1, 1.5, 1, 1]


def test_weka_subagent_that_outlives_the_next_call_runs_in_the_background(read):
    (session,) = read(
        weka(
            call(0, 10, 5, [], api_time=1.0),
            subagent(2, call(2, 8, 2, [], api_time=20.0)),
            call(5, 12, 5, [], api_time=1.0),
            call(30, 12, 5, [], api_time=1.0),
        )
    )
    assert order(session) == [(), (0,), (0,), (1, 2)]


def test_weka_subagent_times_may_count_from_its_own_start(read):
    (session,) = read(
        weka(call(100, 8, 1, [], api_time=1.0), subagent(103, call(0, 8, 1, [], api_time=1.0), call(4, 8, 1, [])))
    )
    assert (order(session), delays(session)) == ([(), (0,), (1,)], [0, 2, 3])


def test_weka_calls_that_overlap_are_in_flight_together(read):
    (session,) = read(
        weka(
            call(0, 8, 1, [], api_time=1.0),
            call(2, 8, 1, [], api_time=5.0),
            call(3, 8, 1, [], api_time=1.0),
            call(9, 8, 1, []),
        )
    )
    assert (order(session), delays(session)) == ([(), (0,), (0,), (1, 2)], [0, 1, 2, 2])


entries = st.recursive(
    st.builds(
        lambda t, length: call(t, 8, 1, [], **({} if length is None else {"api_time": length})),
        st.integers(0, 20),
        st.none() | st.integers(0, 8),
    ),
    lambda inner: st.builds(lambda t, some: subagent(t, *some), st.integers(0, 20), st.lists(inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(entries, min_size=1, max_size=6))
def test_weka_calls_of_any_times_have_one_first_call_and_wait_for_earlier_ones(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("drawn") / "session.json"
    path.write_text(json.dumps(weka(call(0, 8, 1, []), *drawn)))
    (session,) = AgentFile(path).sessions()
    for place, one in enumerate(session.calls):
        assert bool(one.after) == bool(place)
        assert list(one.after) == sorted(set(one.after))
        assert all(0 <= before < place for before in one.after)
        assert one.delay_s >= 0


def test_weka_sessions_stand_in_lines_in_a_list_or_alone_in_a_file(read, tmp_path):
    assert [session.name for session in read(weka(call(0, 8, 1, [])), weka(call(0, 8, 1, []), id="b"))] == ["a", "b"]
    path = tmp_path / "whole.json"
    path.write_text(json.dumps(weka(call(0, 8, 1, [])), indent=2))
    assert [session.name for session in AgentFile(path).sessions()] == ["a"]
    path.write_text(json.dumps([weka(call(0, 8, 1, [])), weka(call(0, 8, 1, []), id="b")]))
    assert [session.name for session in AgentFile(path).sessions()] == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (weka(), "line 1: it has no requests"),
        (weka(call(0, 8, 1, []), hash_id_scope="node"), "line 1: 'hash_id_scope' is 'node'"),
        (weka(call(0, 8, 1, []), block_size=0), "'block_size' is 0"),
        (weka(call(0, 8, 1, [1, 2, 3])), r"line 1, requests\[0\]: 3 blocks of 4 tokens are more than its 8"),
        (weka(call(0, 8, 1, [-1])), "'hash_ids' is not a list of whole numbers"),
        (weka(call(0, None, 1, [])), r"requests\[0\]: 'in' is missing"),
        (weka(call(-1, 8, 1, [])), r"'t' is -1 s"),
        (weka(call(0, 8, 1, []), call(1, 8, 1, [], think_time=-2)), r"requests\[1\]: 'think_time' is -2 s"),
        (weka({"t": 0, "type": "x"}), "'type' is 'x', not n, s or subagent"),
        (weka(subagent(1, {"type": "n", "in": 8, "out": 1})), r"requests\[0\], requests\[0\]: 't' is missing"),
    ],
)
def test_weka_sessions_that_cannot_be_sent_are_refused_with_their_place(read, row, problem):
    with pytest.raises(BadInput, match=problem):
        read(row)


# -- MLPerf


CALLED = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]


def message(turn, role, conversation="c", **more):
    return {"conversation_id": conversation, "turn": turn, "role": role} | more


AGENT = [
    message(1, "user", content="Fix it.", system="You are an agent.", tools=[{"type": "function"}], max_new_tokens=70),
    message(2, "assistant", tool_calls=CALLED),
    message(3, "tool", tool_results=[{"tool_call_id": "c1", "content": "a.py"}], delay_seconds=1.25),
    message(4, "assistant", content="Done."),
    message(5, "user", content="Thanks.", delay_seconds=3, max_new_tokens=9),
]


def test_mlperf_rows_of_users_and_tools_are_calls_that_repeat_what_was_said(read):
    (session,) = read({"_type": "dataset_metadata", "version": 1}, *AGENT)
    assert (order(session), delays(session)) == ([(), (0,), (1,)], [0, 1.25, 3])
    assert [one.output_tokens for one in session.calls] == [70, 70, 9]
    assert {one.input_tokens for one in session.calls} == {UNPLANNED}
    assert [one.fields for one in session.calls] == [{"tools": [{"type": "function"}]}] * 3
    said = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "tool_calls": CALLED, "content": None},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    assert [list(one.messages) for one in session.calls] == [said[:2], said[:4], said]


def test_mlperf_conversations_follow_each_other(read):
    other = [message(1, "user", "d", content="Hi.")]
    assert [(one.name, len(one.calls)) for one in read(*AGENT, *other)] == [("c", 3), ("d", 1)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([message(1, "assistant", content="a")], "line 1: the role 'assistant' cannot come first"),
        ([message(2, "user", content="a")], "line 1: 'turn' is 2, and 1 comes next"),
        ([AGENT[0], message(2, "user", content="a")], "line 2: the role 'user' cannot come after 'user'"),
        ([AGENT[0], message(2, "assistant", content="a"), message(3, "tool", tool_results=[])], "was not called"),
        ([*AGENT[:2], message(3, "user", content="a")], "line 3: the row before it has 'tool_calls'"),
        ([*AGENT[:2], message(3, "tool", tool_results=[{"content": "a"}])], r"tool_results\[0\]: 'tool_call_id'"),
        ([*AGENT[:2], message(3, "tool", tool_results=[])], "line 3: 'tool_results' is empty"),
        ([message(1, "user", content="a", delay_seconds=-1)], "line 1: 'delay_seconds' is -1 s"),
        ([message(1, "user", content="")], "line 1: 'content' is missing"),
        ([AGENT[0], message(2, "assistant")], "neither 'content' nor 'tool_calls'"),
        ([AGENT[0], message(1, "user", "d", content="a"), AGENT[1]], "line 3: the conversation 'c' goes on after"),
    ],
)
def test_mlperf_rows_that_cannot_be_sent_are_refused_with_their_line(read, rows, problem):
    with pytest.raises(BadInput, match=problem):
        read(*rows)


# -- TraceLab


def at(second):
    return f"2026-05-01T10:00:{second:06.3f}Z"


def tracelab(session, given, answered, total, prefix, out, **more):
    events = [
        {"event_type": "tool_result", "timestamp": at(given)},
        {"event_type": "text", "timestamp": at(answered)},
    ]
    row = {"session_id": session, "timing_events": events, "input_tokens_total": total, "prefix_tokens": prefix}
    return row | {"output_tokens": out} | more


def test_tracelab_rounds_share_what_the_engine_found_and_wait_for_the_round_before(read):
    first, other = read(
        tracelab("a", 0, 2, 100, 0, 10),
        tracelab("b", 1, 2, 50, 0, 5),
        tracelab("a", 5, 6, 130, 96, 20, reasoning_output_tokens=7),
        tracelab("a", 10, 11, 60, 40, 1),
    )
    assert (order(first), delays(first)) == ([(), (0,), (1,)], [0, 3, 4])
    assert [(one.input_tokens, one.output_tokens) for one in first.calls] == [(100, 10), (130, 27), (60, 1)]
    assert [list(zip(one.blocks, one.sizes, strict=True)) for one in first.calls] == [
        [(0, 100)],
        [(0, 96), (1, 34)],
        [(0, 40), (2, 20)],
    ]
    assert len(other.calls) == 1


def test_tracelab_rounds_are_put_in_the_order_of_their_times(read):
    (session,) = read(tracelab("a", 5, 6, 20, 0, 1), tracelab("a", 0, 1, 10, 0, 1))
    assert [one.input_tokens for one in session.calls] == [10, 20]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timing_events": []}, "line 1: 'timing_events' has no time"),
        ({"timing_events": [{"event_type": "text", "timestamp": "now"}]}, r"timing_events\[0\]: 'timestamp' is 'now'"),
        ({"input_tokens_total": None}, "line 1: 'input_tokens_total' is missing"),
        ({"prefix_tokens": -4}, "line 1: 'prefix_tokens' is -4"),
    ],
)
def test_tracelab_rounds_that_cannot_be_sent_are_refused_with_their_line(read, changes, problem):
    with pytest.raises(BadInput, match=problem):
        read(tracelab("a", 0, 1, 10, 0, 1) | changes)


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


def test_otel_spans_of_models_are_calls_in_the_order_of_their_times(read):
    lengths = {"usage__input_tokens": 30, "usage__output_tokens": 4}
    (session,) = read(
        export(span(8, 9, **lengths), span(3, 6, **lengths), span(2, 7, "t1", "invoke_agent")),
        export(span(0, 1, **lengths), span(2, 4, **lengths)),
    )
    assert (order(session), delays(session)) == ([(), (0,), (0,), (1, 2)], [0, 1, 2, 2])
    assert [(one.input_tokens, one.output_tokens) for one in session.calls] == [(30, 4)] * 4


def test_otel_messages_become_those_of_a_chat(read):
    called = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"at": "."}}
    messages = [
        said("user", {"type": "text", "content": "Fix it."}),
        said("assistant", {"type": "reasoning", "content": "hm"}, called),
        said("tool", {"type": "tool_call_response", "id": "c1", "response": ["a.py"]}),
    ]
    tools = [{"type": "function", "name": "ls", "description": "list", "parameters": {}}]
    instructions = [{"type": "text", "content": "You are an agent."}]
    found = {"input__messages": messages, "system_instructions": instructions, "tool__definitions": tools}
    (session,) = read(export(span(0, 1, usage__output_tokens=4, **found)))
    (one,) = session.calls
    assert list(one.messages) == [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"at":"."}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '["a.py"]'},
    ]  # fmt: skip
    function = {"name": "ls", "description": "list", "parameters": {}}
    assert one.fields == {"tools": [{"type": "function", "function": function}]}
    assert (one.input_tokens, one.output_tokens) == (UNPLANNED, 4)


def test_otel_sessions_are_conversations_or_traces(read):
    conversation = attribute("gen_ai.conversation.id", "talk")
    spans = [span(0, 1, "t1", usage__input_tokens=5), span(2, 3, "t2", usage__input_tokens=5)]
    assert [session.name for session in read(export(*spans))] == ["t1", "t2"]
    together = [one | {"attributes": [*one["attributes"], conversation]} for one in spans]
    assert [(session.name, len(session.calls)) for session in read(export(*together))] == [("talk", 2)]


def test_other_spans_may_have_no_attributes(read):
    bare = {"traceId": "t1", "startTimeUnixNano": "0", "endTimeUnixNano": "1"}
    (session,) = read(export(bare, span(0, 1, usage__input_tokens=5)), {"resourceSpans": [{"scopeSpans": [{}]}, {}]})
    assert len(session.calls) == 1


def with_value(name, value):
    """A span whose attribute has a value in OTLP's own form."""
    one = span(0, 1, usage__input_tokens=5)
    return one | {"attributes": [*one["attributes"], {"key": name, "value": value}]}


def test_otel_attributes_may_be_lists_and_objects(read):
    text = {"kvlistValue": {"values": [{"key": "type", "value": {"stringValue": "text"}},
                                       {"key": "content", "value": {"stringValue": "Hi"}}]}}  # fmt: skip
    message = {"kvlistValue": {"values": [{"key": "role", "value": {"stringValue": "user"}},
                                          {"key": "parts", "value": {"arrayValue": {"values": [text]}}}]}}  # fmt: skip
    (session,) = read(export(with_value("gen_ai.input.messages", {"arrayValue": {"values": [message]}})))
    assert session.calls[0].messages == ({"role": "user", "content": "Hi"},)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (with_value("x", {"arrayValue": {"values": [1]}}), r"spans\[0\]: 'x' is '1', not an object"),
        (with_value("x", {"kvlistValue": {"values": [{"key": "a"}]}}), r"spans\[0\]: 'x' is missing"),
        (with_value("x", {"kvlistValue": 3}), r"spans\[0\]: 'x' is '3', not an object"),
        (
            span(0, 1),
            r"line 1, resourceSpans\[0\], scopeSpans\[0\], spans\[0\]: 'gen_ai.usage.input_tokens' is missing",
        ),
        (span(5, 1, usage__input_tokens=5), "it ends before it begins"),
        (span(0, 1, usage__input_tokens=5) | {"endTimeUnixNano": None}, "'endTimeUnixNano' is missing"),
        (span(0, 1, input__messages=[{"role": "user"}]), "has no 'role' or no 'parts'"),
        (span(0, 1, input__messages=[said("user", {"type": "blob"})]), "a part of a message is 'blob'"),
    ],
)
def test_otel_spans_that_cannot_be_sent_are_refused_with_their_place(read, broken, problem):
    with pytest.raises(BadInput, match=problem):
        read(export(broken))


# -- which format


def test_each_format_is_recognized_by_its_fields(tmp_path):
    rows = {
        "weka": weka(call(0, 8, 1, [])),
        "mlperf": AGENT[0],
        "tracelab": tracelab("a", 0, 1, 10, 0, 1),
        "otel": export(span(0, 1, usage__input_tokens=5)),
    }
    for name, row in rows.items():
        path = tmp_path / name
        path.write_text(json.dumps(row))
        assert AgentFile(path).format == name


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"prompt": "a"}', "line 1: unknown format, none of weka, mlperf, tracelab, otel"),
        ("[1]", "object 1: not a JSON object"),
        ("hello", "the file: not JSON"),
        ("", "is empty"),
        ('{"resourceSpans": []}', "has no session of the format otel"),
    ],
)
def test_a_file_that_has_no_sessions_is_refused(tmp_path, content, problem):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(BadInput, match=problem):
        list(AgentFile(path).sessions())


def test_a_line_that_is_cut_off_is_refused_with_its_number(tmp_path):
    path = tmp_path / "file"
    path.write_text(json.dumps(AGENT[0]) + "\n" + json.dumps(AGENT[1])[:-5])
    with pytest.raises(BadInput, match="line 2: not JSON"):
        list(AgentFile(path).sessions())

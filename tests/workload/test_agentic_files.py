"""Recorded sessions of agents: each format gives the calls, what each waited for, and for how
long.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.errors import BadInput
from loadgen.workload.datasets.agentic.agentic_dataset import AgentFile
from loadgen.workload.datasets.agentic.recorded_session import direct_predecessors
from loadgen.workload.prompt import UNPLANNED
from tests.helpers.recorded_agents import (
    AGENT,
    CALLED,
    call,
    delays,
    export,
    message,
    order,
    span,
    subagent,
    tracelab,
    weka,
)

# -- what times show


def test_calls_one_after_another_wait_for_the_one_before():
    assert direct_predecessors([(0, 1), (1, 2), (3, 4)]) == [[], [0], [1]]


def test_calls_that_overlap_do_not_wait_for_each_other_and_the_next_waits_for_both():
    assert direct_predecessors([(0, 1), (2, 5), (3, 4), (6, 7)]) == [[], [0], [0], [1, 2]]


def test_a_call_that_began_before_any_had_ended_waits_for_none():
    assert direct_predecessors([(0, 3), (1, 2), (2.5, 4)]) == [[], [], [1]]


def test_calls_without_a_length_wait_for_the_last_one():
    assert direct_predecessors([(0, 0), (0, 0), (5, 5)]) == [[], [0], [1]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25))
def test_what_is_waited_for_is_the_order_by_time_without_shortcuts(drawn):
    times = sorted((begin, begin + length) for begin, length in drawn)
    before = [{j for j in range(i) if times[j][1] <= times[i][0]} for i in range(len(times))]
    expected = [sorted(all_of - {k for j in all_of for k in before[j]}) for all_of in before]
    assert direct_predecessors(times) == expected


# -- Weka


def test_weka_calls_wait_for_each_other_with_recorded_pauses(recorded):
    (session,) = recorded(
        weka(
            call(0, 10, 5, [1, 2], api_time=2.0),
            call(5, 14, 6, [1, 2, 3], api_time=1.0),
            call(9, 18, 7, [1, 2, 3, 4], think_time=2.5),
        )
    )
    assert order(session) == [(), (0,), (1,)]
    assert delays(session) == [0, 3, 2.5]
    assert [(one.input_tokens, one.output_tokens) for one in session.calls] == [
        (10, 5),
        (14, 6),
        (18, 7),
    ]
    assert [(one.blocks, one.sizes) for one in session.calls[:2]] == [
        ([1, 2], [4, 4]),
        ([1, 2, 3], [4, 4, 4]),
    ]
    assert not session.is_global


def test_weka_subagents_begin_with_their_spawn_and_the_parent_waits_for_them(recorded):
    (session,) = recorded(
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


def test_weka_subagent_that_outlives_the_next_call_runs_in_the_background(recorded):
    (session,) = recorded(
        weka(
            call(0, 10, 5, [], api_time=1.0),
            subagent(2, call(2, 8, 2, [], api_time=20.0)),
            call(5, 12, 5, [], api_time=1.0),
            call(30, 12, 5, [], api_time=1.0),
        )
    )
    assert order(session) == [(), (0,), (0,), (1, 2)]


def test_weka_subagent_times_may_count_from_its_own_start(recorded):
    (session,) = recorded(
        weka(
            call(100, 8, 1, [], api_time=1.0),
            subagent(103, call(0, 8, 1, [], api_time=1.0), call(4, 8, 1, [])),
        )
    )
    assert (order(session), delays(session)) == ([(), (0,), (1,)], [0, 2, 3])


def test_weka_calls_that_overlap_are_in_flight_together(recorded):
    (session,) = recorded(
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
    lambda inner: st.builds(
        lambda t, some: subagent(t, *some), st.integers(0, 20), st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(entries, min_size=1, max_size=6))
def test_weka_calls_of_any_times_have_one_first_call_and_wait_for_earlier_ones(
    tmp_path_factory, drawn
):
    path = tmp_path_factory.mktemp("drawn") / "session.json"
    path.write_text(json.dumps(weka(call(0, 8, 1, []), *drawn)))
    (session,) = AgentFile(path).sessions()
    for place, one in enumerate(session.calls):
        assert bool(one.after) == bool(place)
        assert list(one.after) == sorted(set(one.after))
        assert all(0 <= before < place for before in one.after)
        assert one.delay_s >= 0


def test_weka_sessions_stand_in_lines_in_a_list_or_alone_in_a_file(recorded, tmp_path):
    assert [
        session.name
        for session in recorded(weka(call(0, 8, 1, [])), weka(call(0, 8, 1, []), id="b"))
    ] == ["a", "b"]
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
        (
            weka(call(0, 8, 1, [1, 2, 3])),
            r"line 1, requests\[0\]: 3 blocks of 4 tokens are more than its 8",
        ),
        (weka(call(0, 8, 1, [-1])), "'hash_ids' is not a list of whole numbers"),
        (weka(call(0, None, 1, [])), r"requests\[0\]: 'in' is missing"),
        (weka(call(-1, 8, 1, [])), r"'t' is -1 s"),
        (
            weka(call(0, 8, 1, []), call(1, 8, 1, [], think_time=-2)),
            r"requests\[1\]: 'think_time' is -2 s",
        ),
        (weka({"t": 0, "type": "x"}), "'type' is 'x', not n, s or subagent"),
        (
            weka(subagent(1, {"type": "n", "in": 8, "out": 1})),
            r"requests\[0\], requests\[0\]: 't' is missing",
        ),
    ],
)
def test_weka_sessions_that_cannot_be_sent_are_refused_with_their_place(recorded, row, problem):
    with pytest.raises(BadInput, match=problem):
        recorded(row)


# -- MLPerf


def test_mlperf_rows_of_users_and_tools_are_calls_that_repeat_what_was_said(recorded):
    (session,) = recorded({"_type": "dataset_metadata", "version": 1}, *AGENT)
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


def test_mlperf_conversations_follow_each_other(recorded):
    other = [message(1, "user", "d", content="Hi.")]
    assert [(one.name, len(one.calls)) for one in recorded(*AGENT, *other)] == [("c", 3), ("d", 1)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([message(1, "assistant", content="a")], "line 1: the role 'assistant' cannot come first"),
        ([message(2, "user", content="a")], "line 1: 'turn' is 2, and 1 comes next"),
        (
            [AGENT[0], message(2, "user", content="a")],
            "line 2: the role 'user' cannot come after 'user'",
        ),
        (
            [AGENT[0], message(2, "assistant", content="a"), message(3, "tool", tool_results=[])],
            "was not called",
        ),
        (
            [*AGENT[:2], message(3, "user", content="a")],
            "line 3: the row before it has 'tool_calls'",
        ),
        (
            [*AGENT[:2], message(3, "tool", tool_results=[{"content": "a"}])],
            r"tool_results\[0\]: 'tool_call_id'",
        ),
        ([*AGENT[:2], message(3, "tool", tool_results=[])], "line 3: 'tool_results' is empty"),
        ([message(1, "user", content="a", delay_seconds=-1)], "line 1: 'delay_seconds' is -1 s"),
        ([message(1, "user", content="")], "line 1: 'content' is missing"),
        ([AGENT[0], message(2, "assistant")], "neither 'content' nor 'tool_calls'"),
        (
            [AGENT[0], message(1, "user", "d", content="a"), AGENT[1]],
            "line 3: the conversation 'c' goes on after",
        ),
    ],
)
def test_mlperf_rows_that_cannot_be_sent_are_refused_with_their_line(recorded, rows, problem):
    with pytest.raises(BadInput, match=problem):
        recorded(*rows)


# -- TraceLab


def test_tracelab_rounds_share_what_the_engine_found_and_wait_for_the_round_before(recorded):
    first, other = recorded(
        tracelab("a", 0, 2, 100, 0, 10),
        tracelab("b", 1, 2, 50, 0, 5),
        tracelab("a", 5, 6, 130, 96, 20, reasoning_output_tokens=7),
        tracelab("a", 10, 11, 60, 40, 1),
    )
    assert (order(first), delays(first)) == ([(), (0,), (1,)], [0, 3, 4])
    assert [(one.input_tokens, one.output_tokens) for one in first.calls] == [
        (100, 10),
        (130, 27),
        (60, 1),
    ]
    assert [list(zip(one.blocks, one.sizes, strict=True)) for one in first.calls] == [
        [(0, 100)],
        [(0, 96), (1, 34)],
        [(0, 40), (2, 20)],
    ]
    assert len(other.calls) == 1


def test_tracelab_rounds_are_put_in_the_order_of_their_times(recorded):
    (session,) = recorded(tracelab("a", 5, 6, 20, 0, 1), tracelab("a", 0, 1, 10, 0, 1))
    assert [one.input_tokens for one in session.calls] == [10, 20]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timing_events": []}, "line 1: 'timing_events' has no time"),
        (
            {"timing_events": [{"event_type": "text", "timestamp": "now"}]},
            r"timing_events\[0\]: 'timestamp' is 'now'",
        ),
        ({"input_tokens_total": None}, "line 1: 'input_tokens_total' is missing"),
        ({"prefix_tokens": -4}, "line 1: 'prefix_tokens' is -4"),
    ],
)
def test_tracelab_rounds_that_cannot_be_sent_are_refused_with_their_line(
    recorded, changes, problem
):
    with pytest.raises(BadInput, match=problem):
        recorded(tracelab("a", 0, 1, 10, 0, 1) | changes)


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


def test_a_file_of_another_format_than_named_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text(json.dumps(weka(call(0, 8, 1, []))))
    assert AgentFile(path, "weka").format == "weka"
    with pytest.raises(BadInput, match="is of the format weka, not otel; leave it out"):
        AgentFile(path, "otel")


def test_a_line_that_is_cut_off_is_refused_with_its_number(tmp_path):
    path = tmp_path / "file"
    path.write_text(json.dumps(AGENT[0]) + "\n" + json.dumps(AGENT[1])[:-5])
    with pytest.raises(BadInput, match="line 2: not JSON"):
        list(AgentFile(path).sessions())

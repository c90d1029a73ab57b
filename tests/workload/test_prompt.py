"""The hash of the prompts of a run, and the graph of its sessions: which requests follow which."""

import hashlib
from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from loadgen.errors import BadInput
from loadgen.workload import request_store
from loadgen.workload.prompt import Prompt, PromptDigest, SessionGraph, SessionOrder
from loadgen.workload.request_store import Requests

CHAT = ({"role": "user", "content": "a"},)
A, B = Prompt("a\u00e9", 3, 5, "1"), Prompt("b", 3, 5, "2")


def digest(*prompts):
    made = PromptDigest()
    for prompt in prompts:
        made.add(prompt)
    return made


@pytest.mark.parametrize(
    ("prompts", "lines"),
    [
        ([A, B], '["a\u00e9",5]\n["b",5]\n'),
        ([Prompt("said", 1, 2, "1", CHAT)], '[[{"role":"user","content":"a"}],2]\n'),
        ([], ""),
    ],
    ids=["texts", "chat", "none"],
)
def test_sha256_covers_a_json_line_per_prompt(prompts, lines):
    assert digest(*prompts).sha256 == hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed", [{"text": "c"}, {"output_tokens": 6}, {"messages": CHAT}, {"fields": {"min_p": 0.1}}]
)
def test_another_question_or_length_of_answer_is_another_hash(changed):
    assert digest(structs.replace(A, **changed)).sha256 != digest(A).sha256


def test_another_order_is_another_hash():
    assert digest(A, B).sha256 != digest(B, A).sha256


@pytest.mark.parametrize(
    "changed",
    [
        {"input_tokens": 9},
        {"source": "file/1"},
        {"server_tokens": 11},
        {"due_ns": 7},
        {"after": (1,)},
    ],
)
def test_sha256_ignores_tokenizer_source_and_times(changed):
    assert digest(structs.replace(A, **changed)).sha256 == digest(A).sha256


def test_distinct_ignores_output_tokens():
    chat = Prompt("", 1, 1, "3", CHAT)
    assert digest(A, structs.replace(A, output_tokens=1, source="4"), B, chat, chat).distinct == 3
    assert digest().distinct == 0


def graph(*back: tuple[int, ...]) -> SessionGraph:
    ends = array("q", accumulate(map(len, back)))
    return SessionGraph(array("q", [rows for each in back for rows in each]), ends)


def prompt(*after: int, think_ns: int = 0) -> Prompt:
    return Prompt("text", 1, 1, "mine/7", after=after, think_ns=think_ns)


def checked(*prompts: Prompt) -> SessionOrder:
    order = SessionOrder()
    for each in prompts:
        order.add(each)
    return order


def test_a_chain_has_one_follower_each():
    found = graph((), (1,), (1,), (), (1,))
    assert [found.followers(row) for row in range(5)] == [[1], [2], [], [4], []]
    assert [found.predecessors(row) for row in range(5)] == [[], [0], [1], [], [3]]


def test_a_spawn_has_several_followers_and_a_join_several_before_it():
    found = graph((), (1,), (2,), (3,), (1, 2, 3))
    assert found.followers(0) == [1, 2, 3]
    assert [found.followers(row) for row in (1, 2, 3, 4)] == [[4], [4], [4], []]
    assert found.predecessors(4) == [3, 2, 1]


def test_requests_beyond_the_rows_repeat_them():
    found = graph((), (1,), (1, 2))
    assert [found.followers(index) for index in (3, 4, 5)] == [[4, 5], [5], []]
    assert [found.predecessors(index) for index in (3, 4, 5)] == [[], [3], [4, 3]]


@given(st.lists(st.sets(st.integers(1, 6)), min_size=1, max_size=20))
def test_followers_are_the_reverse_of_what_is_followed(drawn):
    back = [tuple(sorted(rows for rows in each if rows <= row)) for row, each in enumerate(drawn)]
    found = graph(*back)
    for row in range(len(back)):
        assert found.predecessors(row) == [row - rows for rows in back[row]]
        assert found.followers(row) == [
            later for later in range(len(back)) if later - row in back[later]
        ]


def test_a_store_keeps_the_graph(tmp_path):
    prompts = [prompt(), prompt(1), prompt(2), prompt(1, 2, 3), prompt(), prompt(1)]
    request_store.write(tmp_path, prompts, lambda one: b"{}", dict, 6)
    with Requests(tmp_path) as read:
        found = read.graph()
        assert [found.predecessors(row) for row in range(6)] == [[], [0], [0], [2, 1, 0], [], [4]]
        assert [read.turn(row) for row in range(6)] == [0, 1, 2, 3, 0, 1]


def test_sessions_are_counted_by_their_first_prompts():
    assert checked(prompt(), prompt(1), prompt(1, 2), prompt(), prompt(1)).sessions == 2


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ([prompt(1)], "the first prompt follows another"),
        (
            [prompt(), prompt(2)],
            "mine/7: follows the prompt 2 places before it, which is not in its session",
        ),
        ([prompt(), prompt(), prompt(2)], "which is not in its session"),
        ([prompt(), prompt(0)], "follows the prompt 0 places before it"),
        ([prompt(), prompt(-1)], "follows the prompt -1 places before it"),
        ([prompt(), prompt(1, 1)], "follows one prompt twice"),
        ([prompt(), prompt(1, think_ns=-5)], "the think time is -5 ns"),
    ],
    ids=["first", "beyond", "other session", "itself", "later", "twice", "negative"],
)
def test_a_prompt_that_cannot_follow_is_refused(prompts, problem):
    with pytest.raises(BadInput, match=problem):
        checked(*prompts)

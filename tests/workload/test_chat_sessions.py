"""Chats of a file as sessions: what stands between two answers is one turn."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt, Sessions
from loadgen.workload.target import Target
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = str(ROOT / "engines" / "sim" / "tokenizer.json")


def says(role: str, content: str | None, **others: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | others


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CHAT = [
    says("system", "Be brief."),
    says("user", "Weather in Rome?"),
    says("assistant", None, tool_calls=[CALL]),
    says("tool", "sunny", tool_call_id="c1"),
    says("tool", "22 degrees", tool_call_id="c1"),
    says("user", "In one word?"),
    says("assistant", "sunny and warm today"),
    says("user", "Thanks."),
]


def dataset(folder: Path, *rows: dict[str, Any], **changes: Any) -> Any:
    path = folder / "chats.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    given = {"turns": "all", "tokenizer": SIMULATOR, "backend": "openai-chat"} | changes
    return datasets.create(RunSettings(dataset_name="jsonl", dataset_path=str(path), **given))


def made(folder: Path, *rows: dict[str, Any], count: int = 1, **changes: Any) -> list[Prompt]:
    return list(dataset(folder, *rows, **changes).sessions(count))


def test_all_messages_between_two_answers_are_one_turn(tmp_path: Path) -> None:
    first, second, third = made(tmp_path, {"messages": CHAT})
    assert [prompt.follows for prompt in (first, second, third)] == [False, True, True]
    assert list(first.messages) == CHAT[:2]
    assert [message["role"] for message in second.messages[2:]] == [
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert second.messages[2] == says("assistant", ANSWER, tool_calls=[CALL])
    assert third.messages[6]["content"] is ANSWER
    assert third.messages[7] == CHAT[7]


def test_recorded_history_is_sent_as_it_is(tmp_path: Path) -> None:
    prompts = made(tmp_path, {"messages": CHAT}, history="recorded")
    assert [list(prompt.messages) for prompt in prompts] == [CHAT[:2], CHAT[:6], CHAT]


def test_answers_are_as_long_as_the_recorded_texts(tmp_path: Path) -> None:
    prompts = made(tmp_path, {"messages": CHAT}, custom_output_len=9)
    counted = datasets.create(RunSettings(tokenizer=SIMULATOR)).tokenizer.count(
        ["sunny and warm today"]
    )
    assert [prompt.output_tokens for prompt in prompts] == [9, *counted, 9]
    row = {"messages": CHAT, "output_tokens": 5}
    assert [prompt.output_tokens for prompt in made(tmp_path, row)] == [5, 5, 5]


def test_input_tokens_are_planned_where_the_history_is_known(tmp_path: Path) -> None:
    real, recorded = (
        made(tmp_path, {"messages": CHAT}, history=history) for history in ("real", "recorded")
    )
    assert [prompt.input_tokens == UNPLANNED for prompt in real] == [False, True, True]
    tokens = [prompt.input_tokens for prompt in recorded]
    assert 0 < tokens[0] < tokens[1] < tokens[2]


def test_without_a_tokenizer_lengths_are_those_of_the_settings(tmp_path: Path) -> None:
    prompts = made(
        tmp_path, {"messages": CHAT}, tokenizer="none", history="recorded", custom_output_len=7
    )
    assert [(prompt.input_tokens, prompt.output_tokens) for prompt in prompts] == [
        (UNPLANNED, 7)
    ] * 3


def test_turns_limit_a_session_and_a_count_of_prompts_cuts_the_last(tmp_path: Path) -> None:
    rows = [{"id": name, "messages": CHAT} for name in "ab"]
    assert [prompt.source for prompt in made(tmp_path, *rows, count=3, turns="2")] == [
        *("a/0", "a/1", "b/0", "b/1", "a/0", "a/1")
    ]
    assert [prompt.source for prompt in dataset(tmp_path, *rows).prompts(4)] == [
        "a/0",
        "a/1",
        "a/2",
        "b/0",
    ]
    assert isinstance(dataset(tmp_path, *rows), Sessions)


def test_fields_of_a_row_are_in_every_turn(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "weather"}}]
    prompts = made(tmp_path, {"messages": CHAT, "extra_body": {"tools": tools}})
    bodies = [
        Target.from_settings(RunSettings(backend="openai-chat"), "m").body(prompt)
        for prompt in prompts
    ]
    assert [b'"tools":[{' in body for body in bodies] == [True] * 3
    assert [body.count(b"\xff") for body in bodies] == [0, 1, 2]


def test_one_turn_is_the_row_as_it_is(tmp_path: Path) -> None:
    (prompt,) = dataset(tmp_path, {"messages": CHAT}, turns="1").prompts(1)
    assert (list(prompt.messages), prompt.follows) == (CHAT, False)


@pytest.mark.parametrize(
    ("row", "changes", "problem"),
    [
        ({"prompt": "Hi"}, {}, "--dataset-path: .* has no messages, which --turns divides"),
        ({"messages": CHAT, "input_tokens": 9}, {}, "--dataset-path: .* has input_tokens"),
        ({"messages": CHAT[2:]}, {}, "--dataset-path: .* has an answer to nothing"),
        ({"messages": [*CHAT[:3], CHAT[6]]}, {}, "--dataset-path: .* has an answer to nothing"),
        (
            {"messages": CHAT},
            {"custom_output_len": -1},
            "--custom-output-len: is -1, and .* has no output_tokens",
        ),
        ({"messages": CHAT}, {"turns": "0"}, "--turns: invalid number"),
        (
            {"messages": CHAT},
            {"turns": "2:4"},
            "--turns: '2:4' is not a number of turns of recorded",
        ),
    ],
)
def test_rows_that_cannot_be_divided_are_refused(
    tmp_path: Path, row: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        made(tmp_path, row, **changes)

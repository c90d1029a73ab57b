"""SGLang's data set custom: conversations, one in each line of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.sharegpt_file import ConversationLines
from tests.helpers.command_line import TOKENIZER


def talk(
    question: str, answer: str, *, key: str = "conversations", text: str = "content"
) -> dict[str, Any]:
    return {key: [{"role": "user", text: question}, {"role": "assistant", text: answer}]}


def written(folder: Path, *lines: str) -> Path:
    path = folder / "talks.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_both_spellings_of_keys_are_read(tmp_path: Path) -> None:
    rows = [talk("a", "b"), talk("c", "d", text="value"), talk("e", "f", key="conversation")]
    found = ConversationLines(written(tmp_path, *map(json.dumps, rows)))
    pairs = [(each.prompt, each.answer) for number in range(len(found)) if (each := found[number])]
    assert pairs == [("a", "b"), ("c", "d"), ("e", "f")]


def test_lines_that_are_no_conversation_of_two_turns_are_left_out(tmp_path: Path) -> None:
    others = [
        "",
        "{not json",
        "3",
        "[]",
        "{}",
        json.dumps({"conversations": [{"content": "alone"}]}),
    ]
    numbers = json.dumps({"conversations": [{"content": 3}, {"content": "b"}]})
    found = ConversationLines(written(tmp_path, *others, numbers, json.dumps(talk("a", "b"))))
    assert (len(found), found[0].source) == (1, "7")
    with pytest.raises(BadInput, match="has no conversation of two turns"):
        ConversationLines(written(tmp_path, *others))


def test_prompts_have_the_tokens_of_the_file_and_no_upper_bound(tmp_path: Path) -> None:
    rows = [talk("word " * 3000, "reply " * 50), talk("x", "y")]
    path = written(tmp_path, *map(json.dumps, rows))
    asked = RunSettings(
        dataset_name="custom",
        dataset_path=str(path),
        dataset_rule="sglang",
        tokenizer=TOKENIZER,
        seed=1,
    )
    dataset = datasets.create(asked)
    prompts = list(dataset.prompts(1))
    assert prompts[0].source == "custom/0"
    assert prompts[0].output_tokens > 10
    assert dataset.provenance()["name"] == "custom"
    assert dataset.provenance()["rule"] == "sglang"

"""Preparing: what is made of a data set, and what is made only on request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner import preparer
from loadgen.runner.preparer import PrepareOrder, prepare
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from loadgen.workload.prompt import UNPLANNED, Prompt, PromptDigest, prompt_mark
from loadgen.workload.request_store import WARMUP_PREFIX, Requests
from loadgen.workload.target import Target
from tests.helpers.source import ROOT

COUNT = 4
SIMULATED = str(ROOT / "engines" / "sim" / "tokenizer.json")


class Uncounted:
    """Prompts whose tokens nobody has counted."""

    def __init__(self, text: str = "question {}") -> None:
        self._text = text

    def prompts(self, count: int) -> Iterator[Prompt]:
        return (Prompt(self._text.format(row), UNPLANNED, 2, f"own/{row}") for row in range(count))

    def provenance(self) -> dict[str, Any]:
        return {"name": "own"}


class Continuing(Uncounted):
    def beyond(self, count: int) -> Iterator[Prompt]:
        return (
            Prompt(f"question {row}", UNPLANNED, 2, f"own/{row}")
            for row in range(count, count + COUNT)
        )


def order(folder: Path, *, further: bool = False, **changes: Any) -> PrepareOrder:
    settings = RunSettings(backend="openai-chat", tokenizer="none", num_prompts=COUNT).replace(
        **changes
    )
    return PrepareOrder(
        settings, Target.from_settings(settings, "m"), COUNT, folder, further=further
    )


@pytest.mark.parametrize(
    "changes", [{}, {"num_warmups": 2}, {"num_warmups": 2, "warmup_prompt": "first"}]
)
def test_prompts_are_told_apart_only_where_more_may_follow(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[PromptDigest] = []
    original = PromptDigest.marks
    monkeypatch.setattr(PromptDigest, "marks", lambda self: asked.append(self) or original(self))
    assert prepare(order(tmp_path, **changes), Continuing()) is None
    assert asked == []
    made = prepare(order(tmp_path, further=True, **changes), Continuing())
    assert len(asked) == 1
    assert made is not None


def test_a_further_prompt_is_marked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[Prompt] = []
    monkeypatch.setattr(
        preparer, "prompt_mark", lambda prompt: marked.append(prompt) or prompt_mark(prompt)
    )
    prepare(order(tmp_path, further=True), Continuing())
    assert len(marked) == COUNT


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
def test_stand_ins_for_uncounted_prompts_have_about_as_many_words(
    backend: str, tmp_path: Path
) -> None:
    prepare(order(tmp_path, num_warmups=2, backend=backend), Uncounted("four " * 200 + "{}"))
    with Requests(tmp_path, WARMUP_PREFIX) as read:
        asked = [orjson.loads(read.body(row)) for row in range(len(read))]
    texts = [
        body["messages"][0]["content"] if backend == "openai-chat" else body["prompt"]
        for body in asked
    ]
    assert [len(text.split()) for text in texts] == [200, 200]


class Turns(Uncounted):
    def prompts(self, count: int) -> Iterator[Prompt]:
        return (
            Prompt("question", UNPLANNED, 2, f"own/{row}", after=(1,) * (row % 2))
            for row in range(count)
        )


def test_the_schedule_is_drawn_anew_only_for_prompts_that_follow_others(tmp_path: Path) -> None:
    drawn = Schedule.burst(COUNT)
    request_store.write_schedule(tmp_path, drawn)
    prepare(order(tmp_path), Uncounted())
    assert request_store.schedule(tmp_path).sha256 == drawn.sha256
    prepare(order(tmp_path), Turns())
    assert request_store.schedule(tmp_path).due_ns.tolist() == [0, FOLLOWS] * 2


def test_a_schedule_is_read_as_it_was_written(tmp_path: Path) -> None:
    drawn = Schedule.poisson(5.0, 20, seed=3)
    request_store.write_schedule(tmp_path, drawn)
    read = request_store.schedule(tmp_path)
    assert (read.sha256, read.duration_ns) == (drawn.sha256, drawn.duration_ns)
    assert not read.due_ns.flags.writeable


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"classes": ("a:random_input_len=5", "b:random_input_len=x")},
            "--class: b: --random-input-len: ",
        ),
        ({"classes": ("a:", "b:"), "random_input_len": "x"}, "--random-input-len: "),
    ],
)
def test_a_data_set_that_cannot_be_used_is_named_by_its_class(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput) as refused:
        preparer.check(RunSettings(backend="openai-chat", tokenizer=SIMULATED, **changes))
    assert str(refused.value).startswith(says)

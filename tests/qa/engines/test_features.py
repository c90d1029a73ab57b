"""What is said of features of real servers can fail: each rule finds the run that breaks it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.engines.engines import ENGINES
from bench.engines.features import classes, departures, sessions, structured_output, table
from bench.engines.features.measured_run import MeasuredRun, summed
from loadgen.features.capture import CapturedResponse, End
from tests.helpers.captured_responses import Golden


def turn(session: int, place: int, **more: Any) -> dict[str, Any]:
    """A turn of 100 tokens and 20 of answer more than the one before it, sent when that one has
    ended.
    """
    due = (session + place) * 1000
    prompt = 100 + 120 * (place - 1)
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": 20,
        "cached_tokens": max(0, prompt - 120),
    }
    return {
        "session": session,
        "turn": place,
        "due": due,
        "sent": 10,
        "closed": 1000,
        **counts,
        **more,
    }


SESSION = [turn(0, 1), turn(0, 2), turn(0, 3)]


def measured(
    records: Iterable[dict[str, Any]] = (), answers: Iterable[bytes] = (), **own: Any
) -> MeasuredRun:
    """A run with these records and streamed answers, and what its result says."""
    responses = {
        index: Golden("", CapturedResponse(index, 0, 0, 1, 1, ((0, answer),), End.RESPONSE, 0), {})
        for index, answer in enumerate(answers)
    }
    return MeasuredRun({"loadgen": own}, list(records), responses, {})


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"sent": -1}, "before its predecessor had ended"),
        ({"turn": 3}, "comes after turn 1"),
        ({"prompt_tokens": 100}, "does not repeat"),
    ],
)
def test_a_turn_follows_its_predecessor(wrong: dict[str, int], problem: str) -> None:
    assert list(sessions.order_problems([*SESSION, turn(5, 1)])) == []
    (found,) = sessions.order_problems([SESSION[0], SESSION[1] | wrong, turn(5, 1)])
    assert problem in found


@pytest.mark.parametrize(
    ("cached", "is_right"), [(98, False), (99, True), (120, True), (121, False)]
)
def test_a_turn_finds_its_predecessor_in_the_cache(cached: int, is_right: bool) -> None:
    run = measured(
        [SESSION[0], SESSION[1] | {"cached_tokens": cached}], prefix_cache={"block_size": 1}
    )
    assert (list(sessions.cache_problems(run)) == []) is is_right


def test_blocks_of_a_predecessor_are_found_whole() -> None:
    run = measured(
        [SESSION[0], SESSION[1] | {"cached_tokens": 96}], prefix_cache={"block_size": 32}
    )
    assert list(sessions.cache_problems(run)) == []
    run.records[1]["cached_tokens"] = 64
    assert len(list(sessions.cache_problems(run))) == 1


def test_conversations_have_the_turns_that_were_asked(tmp_path: Path) -> None:
    rows = json.loads(sessions.conversations(tmp_path / "c.json", 5).read_text())
    assert [len(row["conversations"]) for row in rows] == [2 * turns for turns in sessions.TURNS]
    assert len(rows[0]["conversations"][0]["value"].split()) == 5


@pytest.mark.parametrize(
    ("asked", "field"),
    [(departures.DISCONNECTS[0], "content_events"), (departures.DISCONNECTS[1], "closed")],
)
def test_users_leave_when_they_were_to(asked: str, field: str) -> None:
    times = {"sent": 0, "closed": 300_100_000, "content_events": 10, "reasoning_events": 0}
    record = {"index": 0, "outcome": "disconnected", **times}
    assert list(departures.time_problems(asked, measured([record]))) == []
    later = record | {field: 10 * times[field]}
    assert len(list(departures.time_problems(asked, measured([later])))) == 1


def test_a_session_ends_with_its_user() -> None:
    gone = SESSION[1] | {"outcome": "disconnected"}
    unsent = SESSION[2] | {"outcome": "disconnected", "sent": None}
    counts = {"disconnected": 1, "never_sent": 1}
    first = SESSION[0] | {"outcome": "ok"}
    assert (
        list(departures.session_problems(measured([first, gone, unsent], departures=counts))) == []
    )
    sent = unsent | {"sent": 10}
    assert list(departures.session_problems(measured([first, gone, sent], departures=counts)))


def stream(*events: dict[str, Any]) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    return head + b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def answered(model: str, text: str) -> bytes:
    return stream({"model": model, "choices": [{"delta": {"content": text}}]})


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([("sql", "a"), ("sql", "b")], "was answered by sql"),
        ([("sql", "a"), ("chat", "a")], "the same answer"),
    ],
)
def test_each_adapter_answers_its_own_class(answers: list[tuple[str, str]], problem: str) -> None:
    records = [{"class": "sql"}, {"class": "chat"}]
    assert (
        list(
            classes.adapter_problems(
                measured(records, [answered("sql", "a"), answered("chat", "b")])
            )
        )
        == []
    )
    (found,) = classes.adapter_problems(
        measured(records, [answered(*answer) for answer in answers])
    )
    assert problem in found


def test_answers_are_held_to_the_keys_of_their_schemas() -> None:
    texts = [json.dumps(dict.fromkeys(fields, 1)) for fields in structured_output.PROPERTIES] + [
        "Red."
    ]
    counts = dict.fromkeys(("answers", "json", "checked", "matching"), 4)
    run = measured(answers=[answered("m", text) for text in texts * 2], structured_output=counts)
    assert list(structured_output.answer_problems(run)) == []
    run = measured(
        answers=[answered("m", text) for text in [*texts, "{}", *texts[1:]]],
        structured_output=counts,
    )
    assert list(structured_output.answer_problems(run)) == [
        "answer 3 has other keys than its schema: {}"
    ]


def test_samples_of_one_name_are_summed() -> None:
    text = '# TYPE a counter\na{x="1"} 2.0\na{x="2"} 3\nb:c_total 1e3\n'
    assert summed(text) == {"a": 5.0, "b:c_total": 1000.0}


def test_every_engine_with_features_is_one_that_is_tried() -> None:
    assert set(table.FEATURES) <= set(ENGINES)

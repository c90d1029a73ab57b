"""Sessions and traces end to end: requests, their times, and what a killed run leaves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import loadgen
from loadgen import report
from loadgen.core.outcome import Outcome
from loadgen.engines.sim.http1 import Request
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from tests.helpers.command_line import TOKENIZER
from tests.helpers.recorded_agents import AGENT, call, weka
from tests.helpers.response_bytes import DONE, answer, delta, streamed, usage
from tests.helpers.scripted_server import chatting, serving

SESSIONS = loadgen.RunSettings(
    preflight=False,
    backend="openai-chat",
    tokenizer=TOKENIZER,
    dataset_name="multi_turn",
    random_input_len=8,
    random_output_len=2,
    turns="3",
    request_rate=50,
    num_prompts=30,
)


def some_fail(ask: Request) -> bytes:
    """Answers all requests but the one with the index 4."""
    return (
        streamed(answer("yes"))
        if ask.index != 4
        else b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    )


async def test_a_server_is_told_what_it_has_answered() -> None:
    asked: list[Request] = []

    def echo(ask: Request) -> bytes:
        asked.append(ask)
        return streamed(answer(f"I am answer {ask.index}."))

    async with serving(chatting(echo)) as url:
        result = await loadgen.run(SESSIONS.replace(base_url=url))
    assert result.data["loadgen"]["outcomes"] == {"ok": 30}
    bodies = {ask.index: ask.json["messages"] for ask in asked}
    assert len(bodies) == 30
    for first in range(0, 30, 3):
        questions = [bodies[first + turn][-1]["content"] for turn in range(3)]
        assert [message["content"] for message in bodies[first + 2]] == [
            questions[0],
            f"I am answer {first}.",
            questions[1],
            f"I am answer {first + 1}.",
            questions[2],
        ]


async def test_records_remember_sessions_also_those_of_a_run_that_was_killed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "records.jsonl"

    async with serving(chatting(some_fail)) as url:
        result = await loadgen.run(SESSIONS.replace(base_url=url, records=str(path)))
    assert result.data["loadgen"]["outcomes"] == {"cancelled": 1, "ok": 28, "status(503)": 1}
    assert result.data["loadgen"]["provenance"]["schedule"]["sessions"] == 10
    assert report.render(loadgen.from_records(path)) == report.render(result)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    partial = loadgen.from_records(path)
    assert sum(partial.data["loadgen"]["outcomes"].values()) == 19
    checks = {check["name"]: check["ok"] for check in partial.data["loadgen"]["checks"]}
    assert checks["another schedule"]
    assert json.dumps(partial.data)


def sharegpt(folder: Path, *, turns: int) -> str:
    path = folder / "conversations.json"
    said = [
        {"from": "gpt" if place % 2 else "human", "value": " ".join(["word"] * (place + 1))}
        for place in range(2 * turns)
    ]
    path.write_text(json.dumps([{"id": "a", "conversations": said}]))
    return str(path)


async def test_recorded_histories_are_asked_as_they_stand_and_their_length_is_checked(
    tmp_path: Path,
) -> None:
    asked: list[Request] = []

    def count(ask: Request) -> bytes:
        asked.append(ask)
        counts = usage(prompt_tokens=ask.prompt_tokens, completion_tokens=2)
        return streamed(delta(content="no") + delta("stop") + counts + DONE)

    settings = SESSIONS.replace(
        dataset_name="sharegpt",
        dataset_path=sharegpt(tmp_path, turns=3),
        turns="all",
        history="recorded",
    )
    async with serving(chatting(count)) as url:
        result = await loadgen.run(settings.replace(base_url=url, num_prompts=3))
    assert [len(ask.json["messages"]) for ask in asked] == [1, 3, 5]
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["input_as_planned"], tokens["unplanned_requests"]) == (3, 0)


def test_a_trace_reaches_the_server_when_it_says(metronome: Process, tmp_path: Path) -> None:
    at_ms = [0, 40, 40, 130, 260, 261, 400]
    path = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": 1000 + ms, "input_length": 20, "output_length": 2, "hash_ids": [1]}
        for ms in at_ms
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    records = tmp_path / "records.jsonl"
    Truth.forget(metronome.url)
    settings = loadgen.RunSettings(
        base_url=metronome.url,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        dataset_name="trace",
        dataset_path=str(path),
        time_scale=0.5,
        records=str(records),
        max_concurrency=100,
        extra_body={"metronome": {"first_ms": 1.0, "gap_ms": 1.0}},
    )
    result = loadgen.run_sync(settings)
    assert result.data["loadgen"]["outcomes"] == {"ok": 7}
    assert not result.data["loadgen"]["closed_loop"]
    file = RecordFile(records)
    assert sorted(record.due - file.start_ns for record in file) == [2_000_000 * ms for ms in at_ms]
    truth = Truth.fetch(metronome.url)
    arrival_ns = truth.arrival_ns[np.argsort(truth.number)]
    assert (arrival_ns - file.start_ns >= [2_000_000 * ms for ms in at_ms]).all()
    assert report.render(loadgen.from_records(records)) == report.render(result)


def test_next_turn_is_sent_a_think_time_after_the_last_answer(
    metronome: Process, tmp_path: Path
) -> None:
    records, think_ns = tmp_path / "records.jsonl", 30_000_000
    Truth.forget(metronome.url)
    settings = SESSIONS.replace(
        base_url=metronome.url,
        records=str(records),
        think_time="0.03",
        num_prompts=12,
        num_warmups=2,
    )
    result = loadgen.run_sync(
        settings.replace(extra_body={"metronome": {"first_ms": 1.0, "gap_ms": 1.0}})
    )
    assert result.data["loadgen"]["outcomes"] == {"ok": 12}
    told = {record.index: record for record in RecordFile(records)}
    for index in range(12):
        if index % 3:
            assert told[index].due == told[index - 1].closed + think_ns
            assert told[index].sent >= told[index].due
            assert told[index].outcome is Outcome.OK


class Agents:
    """Sessions of a turn, two requests that follow it at once, and one that waits for both."""

    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        nodes = [((), 0), ((1,), 0), ((2,), 5), ((1, 2), 10)]
        for number in range(count):
            after, think_ms = nodes[number % len(nodes)]
            text = f"Request {number}."
            yield loadgen.Prompt(
                text, 3, 2 + 6 * (number % 3), text, after=after, think_ns=think_ms * 1_000_000
            )

    def provenance(self) -> dict[str, Any]:
        return {"name": "agents"}


def test_a_request_that_follows_several_is_sent_after_the_last_of_them(
    metronome: Process, tmp_path: Path
) -> None:
    records = tmp_path / "records.jsonl"
    Truth.forget(metronome.url)
    settings = loadgen.RunSettings(
        base_url=metronome.url,
        preflight=False,
        backend="openai-chat",
        request_rate=20,
        num_prompts=80,
        workers=2,
        records=str(records),
        extra_body={"metronome": {"first_ms": 2.0, "gap_ms": 2.0}},
    )
    result = loadgen.run_sync(settings, dataset=Agents())
    assert result.data["loadgen"]["outcomes"] == {"ok": 80}
    assert report.render(loadgen.from_records(records)) == report.render(result)
    told = {record.index: record for record in RecordFile(records)}
    truth = Truth.fetch(metronome.url)
    numbers, last_written_ns = truth.number.tolist(), truth.write_ns[truth.starts[1:] - 1]
    arrived = dict(zip(numbers, truth.arrival_ns.tolist(), strict=True))
    ended = dict(zip(numbers, last_written_ns.tolist(), strict=True))
    for first in range(0, 80, 4):
        for index, before, think_ms in [(1, (0,), 0), (2, (0,), 5), (3, (1, 2), 10)]:
            record, earlier = told[first + index], [told[first + one] for one in before]
            assert record.due == max(one.closed for one in earlier) + think_ms * 1_000_000
            assert record.sent >= record.due
            # By the server's own clock: no request arrived before the last token that it waits for
            # was written.
            assert (
                arrived[first + index]
                > max(ended[first + one] for one in before) + think_ms * 1_000_000
            )
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:31]))
    assert sum(loadgen.from_records(records).data["loadgen"]["outcomes"].values()) == 30


def test_recorded_agents_are_sent_in_the_order_and_with_the_pauses_of_their_file(
    metronome: Process, tmp_path: Path
) -> None:
    def call(t: float, tokens: int, blocks: list[int]) -> dict[str, Any]:
        return {
            "t": t,
            "type": "n",
            "model": "m",
            "in": tokens,
            "out": 3,
            "hash_ids": blocks,
            "api_time": 0.01,
        }

    agent = {
        "t": 0.02,
        "type": "subagent",
        "requests": [call(0.02, 40, [1, 3]), call(0.06, 60, [1, 3, 4])],
    }
    requests = [call(0, 50, [1, 2]), agent, call(0.1, 90, [1, 2, 5, 6])]
    trace = {"block_size": 16, "hash_id_scope": "local", "requests": requests}
    path, records = tmp_path / "agents.jsonl", tmp_path / "records.jsonl"
    path.write_bytes(b"".join(orjson.dumps(trace | {"id": name}) + b"\n" for name in "abcde"))
    settings = loadgen.RunSettings(
        base_url=metronome.url,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        dataset_name="agentic",
        dataset_path=str(path),
        request_rate=50,
        max_think_time=0.03,
        cache="warm",
        records=str(records),
        extra_body={"metronome": {"first_ms": 1.0, "gap_ms": 1.0}},
    )
    result = loadgen.run_sync(settings)
    assert result.data["loadgen"]["outcomes"] == {"ok": 20}
    assert result.data["loadgen"]["provenance"]["schedule"]["sessions"] == 5
    assert result.data["loadgen"]["prefix_cache"]["warm_requests"] == 5
    assert report.render(loadgen.from_records(records)) == report.render(result)
    told = {record.index: record for record in RecordFile(records)}
    edges = {1: ((0,), 10_000_000), 2: ((1,), 30_000_000), 3: ((0, 2), 30_000_000)}
    for first in range(0, 20, 4):
        for place, (before, think_ns) in edges.items():
            assert (
                told[first + place].due
                == max(told[first + one].closed for one in before) + think_ns
            )


def test_recorded_messages_and_tools_reach_the_simulator_for_as_long_as_sessions_begin(
    tmp_path: Path,
) -> None:
    path = tmp_path / "conversations.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in AGENT))
    settings = loadgen.RunSettings(
        engine="sim",
        backend="openai-chat",
        tokenizer="none",
        dataset_name="agentic",
        dataset_path=str(path),
        request_rate=20,
        burstiness=float("inf"),
        duration=0.5,
        max_think_time=0.01,
        custom_output_len=4,
    )
    result = loadgen.run_sync(settings)
    assert result.data["loadgen"]["outcomes"] == {"ok": 30}
    assert result.data["loadgen"]["provenance"]["schedule"]["sessions"] == 10


async def test_a_duration_alone_makes_as_many_sessions_as_begin_in_it() -> None:
    async with serving(chatting(lambda ask: streamed(answer("yes")))) as url:
        settings = SESSIONS.replace(
            base_url=url, num_prompts=None, duration=0.3, burstiness=float("inf")
        )
        result = await loadgen.run(settings)
    assert result.data["loadgen"]["outcomes"] == {"ok": 45}


async def test_a_file_whose_sessions_have_one_call_is_sent_once(tmp_path: Path) -> None:
    path, records = tmp_path / "agents.jsonl", tmp_path / "records.jsonl"
    path.write_bytes(b"".join(orjson.dumps(weka(call(0, 8, 1, []))) + b"\n" for _ in range(3)))
    async with serving(chatting(lambda ask: streamed(answer("yes")))) as url:
        settings = SESSIONS.replace(
            base_url=url,
            dataset_name="agentic",
            dataset_path=str(path),
            turns=None,
            num_prompts=None,
            records=str(records),
        )
        result = await loadgen.run(settings)
    assert result.data["loadgen"]["outcomes"] == {"ok": 3}
    assert loadgen.load(records).data["loadgen"]["outcomes"] == {"ok": 3}


async def test_warm_ups_are_first_turns() -> None:
    asked: list[Request] = []

    def count(ask: Request) -> bytes:
        asked.append(ask)
        return streamed(answer("yes"))

    async with serving(chatting(count)) as url:
        await loadgen.run(SESSIONS.replace(base_url=url, num_prompts=6, num_warmups=4))
    assert [len(ask.json["messages"]) for ask in asked[:4]] == [1] * 4
    assert len(asked) == 4 + 6


async def session_ids(**settings: object) -> dict[int, str | None]:
    """The X-Session-ID of each request, by its number."""
    asked: dict[int, str | None] = {}

    def note(ask: Request) -> bytes:
        assert ask.index is not None
        asked[ask.index] = ask.headers.get("x-session-id")
        return streamed(answer("yes"))

    async with serving(chatting(note)) as url:
        await loadgen.run(SESSIONS.replace(base_url=url, **settings))
    return asked


async def test_the_requests_of_a_session_bear_its_id_and_no_other_session_has_it() -> None:
    ids = await session_ids()
    assert len(ids) == 30
    assert None not in ids.values()
    assert all(ids[index] == ids[index - index % 3] for index in ids)
    assert len(set(ids.values())) == 10


async def test_session_ids_of_two_runs_differ() -> None:
    assert not set((await session_ids()).values()) & set((await session_ids()).values())


async def test_no_id_is_sent_if_none_is_wanted_or_requests_are_no_sessions() -> None:
    assert set((await session_ids(session_header="none")).values()) == {None}
    assert set((await session_ids(turns=None, dataset_name="random")).values()) == {None}


async def test_a_header_of_the_users_is_sent_alone() -> None:
    assert set((await session_ids(header=("x-session-id=mine",))).values()) == {"mine"}


async def test_records_and_result_tell_sessions_and_turns(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"

    async with serving(chatting(some_fail)) as url:
        result = await loadgen.run(SESSIONS.replace(base_url=url, records=str(path)))
    requests = [orjson.loads(line) for line in path.read_bytes().splitlines()[1:-1]]
    assert {(each["index"], each["session"], each["turn"]) for each in requests} == {
        (index, index - index % 3, index % 3 + 1) for index in range(30)
    }
    told = result.data["loadgen"]
    assert [(turn["turn"], turn["ok"], turn["failed"]) for turn in told["turns"]] == [
        (1, 10, 0),
        (2, 9, 1),
        (3, 9, 0),
    ]
    assert (told["sessions"]["count"], told["sessions"]["complete"]) == (10, 9)
    assert told["sessions"]["time_ms"]["count"] == 9

"""The log of a gateway is replayed at its times; private stand-ins hit a prefix cache as often."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.main import dispatch
from tests.helpers.command_line import TOKENIZER, loadgen

SYLLABLES = ("zwo", "qui", "xen", "jak", "vyx", "wub", "kwe", "fju")
REQUESTS, PER_S = 150, 60
NUMBERS = random.Random(7)


def text(words: int) -> str:
    return " ".join("".join(NUMBERS.choices(SYLLABLES, k=3)) for _ in range(words))


def logged() -> Iterator[dict[str, Any]]:
    """Yield requests of chats that share three system messages, and go on with earlier ones."""
    systems, chats = [text(60) for _ in range(3)], list[list[dict[str, str]]]()
    at_s = 1_700_000_000.0
    for _ in range(REQUESTS):
        at_s += NUMBERS.expovariate(PER_S)
        if chats and NUMBERS.random() < 0.6:
            messages = NUMBERS.choice(chats[-10:])
            messages.append({"role": "assistant", "content": text(20)})
        else:
            messages = [{"role": "system", "content": NUMBERS.choice(systems)}]
            chats.append(messages)
        messages.append({"role": "user", "content": text(NUMBERS.randint(5, 40))})
        body = {"model": "theirs", "messages": [*messages], "max_tokens": 3, "user": text(1)}
        yield {"ts": at_s, "request": body, "usage": {"completion_tokens": 3}}


def converted(log: Path, *flags: str) -> list[dict[str, Any]]:
    trace = log.parent / "trace.jsonl"
    arguments = ("--from-log", str(log), "--backend", "openai-chat", "--export", str(trace))
    assert dispatch(["dataset", *arguments, *flags]) == 0
    return list(map(json.loads, trace.read_text().splitlines()))


def replayed(folder: Path) -> tuple[list[dict[str, Any]], float]:
    """Return the records of a replay, and the share of input tokens that the cache had."""
    flags = f"""--engine sim --engine-arg prefix_cache=true --backend openai-chat --quiet
        --dataset-name trace --dataset-path {folder}/trace.jsonl --records {folder}/records"""
    loadgen("run", *flags.split())
    records = list(map(json.loads, (folder / "records").read_text().splitlines()[1:-1]))
    assert [record["outcome"] for record in records] == ["ok"] * REQUESTS
    tokens = sum(record["prompt_tokens"] for record in records)
    return records, sum(record["cached_tokens"] for record in records) / tokens


def test_private_stand_ins_hit_the_cache_as_the_originals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in logged()) + "a broken line\n")
    rows = converted(log)
    said = capsys.readouterr().out
    assert f"{REQUESTS} requests of {REQUESTS + 1} lines; left out: no JSON" in said
    assert "to send it: --backend openai-chat --dataset-name trace --dataset-path" in said
    records, hit_share = replayed(tmp_path)
    due_ms = {record["index"]: record["due"] / 1e6 for record in records}
    assert [due_ms[number] for number in range(REQUESTS)] == [
        pytest.approx(row["timestamp"], abs=1e-3) for row in rows
    ]
    private = converted(log, "--private", "--tokenizer", TOKENIZER)
    assert "left out: user (150)" in capsys.readouterr().out
    assert [row["timestamp"] for row in private] == [row["timestamp"] for row in rows]
    words = {word for line in logged_texts(log) for word in line.split()}
    assert not words & {word for row in private for word in json.dumps(row).split()}
    private_records, private_share = replayed(tmp_path)
    assert hit_share > 0.3
    assert private_share == pytest.approx(hit_share, abs=0.01)
    tokens = [
        {record["index"]: record["prompt_tokens"] for record in part}
        for part in (records, private_records)
    ]
    assert tokens[0] == tokens[1]


def logged_texts(log: Path) -> Iterator[str]:
    for line in log.read_text().splitlines()[:-1]:
        yield from (message["content"] for message in json.loads(line)["request"]["messages"])


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--from-log", "{log}"], "--from-log: writes a file, and none is named; give --export"),
        (["--from-log", "gone", "--export", "new"], "--from-log: gone cannot be read"),
        (["--private"], "--private: has no effect without --from-log"),
        (
            ["--from-log", "{log}", "--export", "{log}"],
            "is the log that is to be read; name another",
        ),
        (
            ["--from-log", "{log}", "--export", "new", "--private"],
            "--private: needs the tokenizer of the model",
        ),
    ],
)
def test_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(next(logged())) + "\n")
    assert dispatch(["dataset", *(flag.format(log=log) for flag in flags)]) == 2
    assert problem in capsys.readouterr().err

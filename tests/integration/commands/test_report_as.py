"""`loadgen report RECORDS --as TOOL`, from a run over sockets to the page."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing.process import Process
from loadgen.testing.replies import DONE, STREAM, delta, usage
from tests.helpers.command_line import SHORT, TOKENIZER, loadgen

MS = 1_000_000
TOKENS, EVENTS = 2000, 60
GAP = 10 * MS  # wide: on a busy machine events of one stream must still arrive apart


def thinking(index: int) -> dict[str, object]:
    """How vLLM with a reasoning parser answers when the tokens are used up: in thoughts; each
    eighth comes to speak.
    """
    thoughts = EVENTS // 2 if index % 8 == 0 else EVENTS - 1
    words = [delta(reasoning="hm ")] * thoughts + [delta(content="so ")] * (EVENTS - 1 - thoughts)
    last = delta("length", content="x") if index % 8 == 0 else delta("length", reasoning="x")
    reads = [(20 * MS, STREAM), (20 * MS, chunk(delta(role="assistant", content="")))]
    reads += [(30 * MS + GAP * number, chunk(word)) for number, word in enumerate([*words, last])]
    end = reads[-1][0] + MS
    reads.append(
        (end, chunk(usage(prompt_tokens=25, completion_tokens=TOKENS) + DONE) + LAST_CHUNK)
    )
    return {
        "index": index,
        "due": 0,
        "sent": 0,
        "input_tokens": 16,
        "output_tokens": TOKENS,
        "reads": [[at, data.decode()] for at, data in reads],
        "end": "response",
        "ended": end,
    }


@pytest.fixture
def records(tmp_path: Path, replay: Callable[..., Process]) -> Path:
    """Of a run against a server whose model thinks, and seldom speaks."""
    about = {
        "format": "loadgen capture",
        "version": 1,
        "loadgen": "0",
        "model": "m",
        "timing": "recorded",
        "note": "",
    }
    capture, path = tmp_path / "thinking.jsonl", tmp_path / "run.jsonl"
    capture.write_text(
        "".join(json.dumps(line) + "\n" for line in (about, *map(thinking, range(24))))
    )
    flags = [
        "--backend",
        "openai-chat",
        "--tokenizer",
        TOKENIZER,
        *SHORT,
        "--num-prompts",
        "24",
        "--quiet",
    ]
    ended = loadgen("run", "--base-url", replay(capture).url, *flags, "--records", str(path))
    assert ended.returncode == 0, ended.stderr
    return path


def test_published_numbers_of_reasoning_are_explained(records: Path) -> None:
    """A median TPOT of TTFT by the number of tokens, a median ITL of 0, a peak of millions of
    tokens per second.
    """
    told = json.loads(loadgen("report", str(records), "--as", "benchmark-runner", "--json").stdout)
    rows = {row["row"]: row for row in told["rows"]}
    tpot, ttft = rows["Median TPOT (ms):"], rows["Median TTFT (ms):"]
    assert tpot["theirs"] == pytest.approx(ttft["theirs"] / TOKENS, rel=0.5)
    assert {"ignores", "with_ttft"} <= {*tpot["why"]}
    itl = rows["Median ITL (ms):"]
    assert itl["theirs"] == 0 < itl["ours"]
    assert "ignores" in itl["why"]
    peak = rows["Peak output token throughput (tok/s):"]
    assert peak["theirs"] > 1_000_000 > peak["ours"]
    assert {"evenly", "reciprocal"} <= {*peak["why"]}
    assert all(told["reasons"][name] for row in told["rows"] for name in row["why"])


def test_reasons_are_numbered(records: Path) -> None:
    page = loadgen("report", str(records), "--as", "benchmark-runner").stdout
    table, legend = page.split("\n\n")[1:]
    header, *lines = table.splitlines()
    used = {number for line in lines for number in line[header.index("why") :].split()}
    assert re.search(r"^Median ITL \(ms\): +0\.00 +\d+\.\d\d  \d", table, re.MULTILINE)
    assert set(re.findall(r"^  (\d+)\. ", legend, re.MULTILINE)) == used


def test_records_without_streams_are_refused(records: Path) -> None:
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    records.write_text(
        "".join(
            json.dumps(line | {"stream": None} if "index" in line else line) + "\n"
            for line in lines
        )
    )
    ended = loadgen("report", str(records), "--as", "aiperf")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "--as: request" in ended.stderr
    assert "record the run again" in ended.stderr


def test_unknown_tool_and_other_files_are_refused(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    result.write_text("{}")
    for flag, words in (
        ("locust", "choose from vllm-0.11"),
        ("sglang", "name a file that --records wrote"),
    ):
        ended = loadgen("report", str(result), "--as", flag)
        assert ended.returncode == 2
        assert words in ended.stderr


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "reason"), [("none.jsonl", "No such file or directory"), (".", "Is a directory")]
)
def test_unreadable_file_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    ended = loadgen("report", str(tmp_path / name), "--as", "vllm-0.11")
    assert ended.returncode == 2
    assert reason in ended.stderr

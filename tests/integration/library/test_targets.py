"""Several targets from a library call: one result, which its records reproduce."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import loadgen
from loadgen import report
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.faults.fault import Shares
from loadgen.testing.faulty import serving
from tests.helpers.repeated import Repeated

MINE = Repeated(loadgen.Prompt("one two three", 3, 3, "mine"))
SETTINGS = loadgen.RunSettings(
    backend="openai-chat",
    request_rate=500.0,
    num_prompts=40,
    preflight=False,
)


def check(result: loadgen.Result, name: str) -> bool | None:
    (found,) = [check["ok"] for check in result.data["loadgen"]["checks"] if check["name"] == name]
    return bool(found)


@pytest.mark.parametrize("balance", ["round-robin", "least-outstanding"])
async def test_requests_are_shared_and_each_target_is_shown(balance: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with serving() as one, serving() as other:
        # Slow enough that a busy machine sends none before it has read the answers that have come.
        settings = SETTINGS.replace(
            base_url=[one.url, other.url], balance=balance, records=str(path), request_rate=50.0
        )
        result = await loadgen.run(settings, dataset=MINE)
        rows = result.data["loadgen"]["targets"]
        assert [row["requests"] for row in rows] == [one.requests, other.requests]
    assert result.data["completed"] == sum(row["ok"] for row in rows) == 40
    assert result.data["total_output_tokens"] == sum(row["output_tokens"] for row in rows)
    assert [row["base_url"] for row in rows] == [one.url, other.url]
    assert check(result, "targets fail unevenly")
    assert check(result, "targets out of turn" if balance == "round-robin" else "balance not kept")
    assert report.render(loadgen.from_records(path)) == report.render(result)
    assert loadgen.from_records(path).data["loadgen"]["targets"] == rows


async def test_a_target_that_fails_is_named_and_the_others_are_as_without_it() -> None:
    async with serving() as good, serving(Shares.parse("status:503=1", seed=1)) as broken:
        result = await loadgen.run(SETTINGS.replace(base_url=(good.url, broken.url)), dataset=MINE)
    first, second = result.data["loadgen"]["targets"]
    assert (first["outcomes"], second["outcomes"]) == ({"ok": 20}, {"status(503)": 20})
    assert check(result, "targets fail unevenly") is False
    assert f"{broken.url} failed 20 of 20" in str(result)
    assert f"to {broken.url}: " in str(result)


async def test_records_that_were_cut_off_still_tell_the_targets_apart(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with serving() as one, serving() as other:
        settings = SETTINGS.replace(base_url=(one.url, other.url), records=str(path))
        await loadgen.run(settings, dataset=MINE)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:21]))
    result = loadgen.from_records(path)
    assert sum(row["ok"] for row in result.data["loadgen"]["targets"]) == 20
    assert result.data["loadgen"]["partial"]


class Sessions:
    """Twelve sessions of one to three turns, 24 in all."""

    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        turns = [turn for session in range(12) for turn in range(1 + session % 3)]
        for number, turn in enumerate(turns[:count]):
            yield loadgen.Prompt(f"turn {number}", 3, 2, f"mine/{number}", after=(1,) * (turn > 0))

    def provenance(self) -> dict[str, object]:
        return {"name": "mine"}


@pytest.mark.parametrize("balance", ["round-robin", "least-outstanding"])
async def test_sessions_stay_where_they_began(balance: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    async with serving() as one, serving() as other:
        settings = SETTINGS.replace(
            base_url=(one.url, other.url), balance=balance, records=str(path), num_prompts=24
        )
        result = await loadgen.run(settings, dataset=Sessions())
    assert result.data["completed"] == 24
    targets = {record.index: record.target for record in RecordFile(path)}
    homes: list[set[int]] = []
    for index, prompt in enumerate(Sessions().prompts(24)):
        if not prompt.follows:
            homes.append(set())
        homes[-1].add(targets[index])
    assert [len(home) for home in homes] == [1] * 12
    if balance == "round-robin":
        assert [home.pop() for home in homes] == [0, 1] * 6
        assert check(result, "targets out of turn")


async def test_never_due_turns_belong_to_the_target_that_failed() -> None:
    async with serving() as good, serving(Shares.parse("status:503=1", seed=1)) as broken:
        settings = SETTINGS.replace(base_url=(good.url, broken.url), num_prompts=24)
        result = await loadgen.run(settings, dataset=Sessions())
    first, second = result.data["loadgen"]["targets"]
    assert first["outcomes"] == {"ok": 12}
    assert second["outcomes"] == {"cancelled": 6, "status(503)": 6}

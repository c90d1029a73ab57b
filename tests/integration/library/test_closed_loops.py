"""A closed loop that ends by duration gets new prompts while there are any, and reports repeats."""

import json
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen import report
from loadgen.checks import Verdict
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.workers import open_workers
from tests.integration.library.test_rehearsal import RUN, conversations, lines, ran

LOOP = RUN.replace(num_prompts=None, max_concurrency=16, duration=4.0)
PREPARED = 1000  # before the clock starts


async def asked(settings: loadgen.RunSettings, **options: Any) -> tuple[Any, list[bytes]]:
    """The result of a run, and the bodies of its requests; thousands a second would need more
    than can be made.
    """
    result, server = await ran(settings, after_s=0.01, **options)
    return result, [ask.body for ask in server.asked]


def distinct(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(
        check for check in result.data["loadgen"]["checks"] if check["name"] == "prompts repeated"
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
async def test_closed_loop_gets_new_prompts_from_a_generator(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    result, bodies = await asked(LOOP.replace(workers=workers, records=str(path)))
    assert len(bodies) > PREPARED
    assert len(set(bodies)) == len(bodies)
    assert result.data["loadgen"]["repeated_prompts"] == 0
    assert distinct(result)["ok"]
    about = result.data["loadgen"]["provenance"]["prompts"]
    assert (about["requests"], about["further"]) == (PREPARED, True)
    assert report.render(loadgen.from_records(path)) == report.render(result)
    sources = [record.source for record in RecordFile(path)]
    assert len(set(sources)) == len(sources) == len(bodies)


@pytest.mark.slow
async def test_a_file_goes_on_beyond_what_was_prepared(tmp_path: Path) -> None:
    path = conversations(tmp_path, 20_000)
    result, bodies = await asked(
        LOOP.replace(dataset_name="sharegpt", dataset_path=path, sharegpt_output_len=2)
    )
    assert len(bodies) > PREPARED
    assert len(set(bodies)) == len(bodies)
    assert result.data["loadgen"]["repeated_prompts"] == 0


@pytest.mark.slow
async def test_where_a_file_ends_the_run_is_suspect(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    data = {"dataset_name": "jsonl", "dataset_path": lines(tmp_path, PREPARED + 50)}
    result, bodies = await asked(LOOP.replace(records=str(path), **data))
    assert len(set(bodies)) == PREPARED + 50 < len(bodies)
    assert result.data["loadgen"]["repeated_prompts"] == len(bodies) - PREPARED - 50
    check = distinct(result)
    assert (check["ok"], check["counts"]) == (False, True)
    assert result.verdict is not Verdict.VALID
    assert report.render(loadgen.from_records(path)) == report.render(result)


async def test_so_many_prompts_that_repeat_are_a_note(tmp_path: Path) -> None:
    data = {"dataset_name": "jsonl", "dataset_path": lines(tmp_path, 50)}
    result, _ = await asked(LOOP.replace(duration=None, num_prompts=100, **data))
    assert result.data["loadgen"]["repeated_prompts"] == 50
    check = distinct(result)
    assert (check["ok"], check["counts"]) == (False, False)


@pytest.mark.slow
async def test_a_cut_record_counts_what_has_ended(tmp_path: Path) -> None:
    path, cut = tmp_path / "records.jsonl", tmp_path / "cut.jsonl"
    await asked(LOOP.replace(max_concurrency=4, duration=0.5, records=str(path)))
    kept = path.read_bytes().splitlines(keepends=True)[:40]
    cut.write_bytes(b"".join(kept))
    result = loadgen.from_records(cut)
    own = result.data["loadgen"]
    assert (own["scheduled"], own["outcomes"], own["error_rate"]) == (39, {"ok": 39}, 0)
    assert own["repeated_prompts"] == 0
    assert own["partial"]
    assert result.data["num_prompts"] == 39


@pytest.mark.slow
async def test_a_cut_record_counts_prompts_that_came_again(tmp_path: Path) -> None:
    path, cut = tmp_path / "records.jsonl", tmp_path / "cut.jsonl"
    data = {"dataset_name": "jsonl", "dataset_path": lines(tmp_path, PREPARED + 50)}
    result, bodies = await asked(LOOP.replace(records=str(path), **data))
    *kept, end = path.read_bytes().splitlines(keepends=True)
    assert "end" in json.loads(end)
    cut.write_bytes(b"".join(kept))
    again = loadgen.from_records(cut).data["loadgen"]
    assert (again["scheduled"], again["repeated_prompts"]) == (
        len(bodies),
        result.data["loadgen"]["repeated_prompts"],
    )


async def test_a_worker_that_dies_takes_only_what_it_had_in_flight(tmp_path: Path) -> None:
    def kill(progress: loadgen.Progress) -> None:
        if progress.begun and progress.ended > 200:
            workers._participants[1]._child.kill()

    settings = LOOP.replace(workers=2, records=str(tmp_path / "records.jsonl")).checked()
    async with open_workers(2) as workers:
        result, bodies = await asked(settings, participant=workers, on_progress=kill)
    own = result.data["loadgen"]
    assert own["partial"]
    assert set(own["outcomes"]) == {"ok"}
    assert own["scheduled"] == own["outcomes"]["ok"] <= len(bodies)
    assert own["error_rate"] == 0

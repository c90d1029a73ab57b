"""A study that a program runs, leaves and resumes."""

import asyncio
from pathlib import Path

import pytest

import loadgen
from loadgen.report import to_json
from tests.helpers.source import ROOT

SMALL = ROOT / "examples" / "studies" / "small.yaml"

pytestmark = pytest.mark.timeout(300)


async def test_cancelled_study_keeps_its_starts_and_resumes(tmp_path: Path) -> None:
    store, started = tmp_path / "store", list[int]()
    enough = asyncio.Event()

    def seen(study: loadgen.SavedStudy) -> None:
        started.append(len(study.findings.trials))
        if len(started) == 2:
            enough.set()

    phases = set[str]()
    task = asyncio.create_task(
        loadgen.tune(
            SMALL,
            store=store,
            on_trial=seen,
            on_progress=lambda progress: phases.add(progress.phase),
        )
    )
    await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "running" in phases
    kept = loadgen.load_study(store)
    assert started == [1, 2]
    assert (len(kept.findings.trials), kept.open) == (2, "starts are missing")
    assert kept.winner is None

    study = await loadgen.tune(SMALL, store=store, on_trial=seen)
    assert started == list(range(1, len(started) + 1))
    assert study.open == ""
    assert to_json(study.data) == to_json(loadgen.load_study(store).data)
    assert asyncio.all_tasks() == {asyncio.current_task()}

"""The store keeps every ended start despite kills, and has one writer at a time."""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.execute import conductor
from loadgen.lab.study.execute.store import DATABASE, FOLDERS, NotKept, Store, holder, locked
from loadgen.lab.study.execute.trial import Failure, Trial, TrialRequest
from tests.helpers.killed_study import STUDY, Fake, Silent
from tests.helpers.study_files import as_yaml, read
from tests.helpers.study_walks import trial


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with (
        locked(tmp_path / "a.store"),
        Store.create(tmp_path / "a.store", {"source": "run", "study": {}}) as made,
    ):
        yield made


# -- what is kept


def test_trial_is_read_back_as_stored(store: Store) -> None:
    request = TrialRequest("seqs", 1, "max_seqs=64", 1)
    # Before a wait for a quiet machine.
    number, folder = store.begin(request, "hash", "2026-01-02T03:04:00Z")
    assert folder.is_dir()
    kept = trial(
        request,
        1234.5,
        ("short", "long"),
        config="hash",
        server_config={"max_num_seqs": 64},
        ready_s=1.5,
        folder="starts/00001",
    )
    store.end(number, kept)
    assert store.trials() == {request: kept}
    assert list(store.trials()[request].runs) == ["short", "long"]


def test_a_failure_is_kept_with_its_line(store: Store) -> None:
    request = TrialRequest("seqs", 0, "max_seqs=64")
    failed = trial(request, Failure("oom_kv", "no room; 'quoted'", transient=False))
    store.end(store.begin(request, "", failed.began)[0], failed)
    assert store.trials()[request].failure == Failure(
        "oom_kv", "no room; 'quoted'", transient=False
    )


def test_a_start_that_has_not_ended_is_no_trial_and_its_files_stay(store: Store) -> None:
    request = TrialRequest("seqs", 0, "max_seqs=64")
    _, folder = store.begin(request, "", "2026-01-02T03:04:05Z")
    (folder / "records.jsonl").write_text("measured")
    number, other = store.begin(request, "", "2026-01-02T03:05:05Z")
    assert store.trials() == {}
    assert other != folder
    store.end(number, trial(request, 1.0, began="2026-01-02T03:05:05Z"))
    assert len(store.trials()) == 1
    assert (folder / "records.jsonl").read_text() == "measured"


# -- what cannot be written


def test_start_that_a_full_disk_lost_can_be_stored_again(store: Store) -> None:
    request = TrialRequest("seqs", 0, "max_seqs=64")
    number, _ = store.begin(request, "", "2026-01-02T03:04:05Z")
    large = trial(request, 1.0, server_config={"note": "x" * 1_000_000}, folder="starts/00001")
    store._database.execute("PRAGMA max_page_count = 1")  # as many as there are: the disk is full
    with pytest.raises(NotKept) as refused:
        store.end(number, large)
    assert str(refused.value) == (
        f"{store.folder}/study.db cannot be written (database or disk is full); make room, and run "
        "the same command again"
    )
    assert store.trials() == {}
    store._database.execute("PRAGMA max_page_count = 100000")
    store.end(number, large)
    assert store.trials() == {request: large}


def test_a_folder_that_cannot_be_made_is_named(store: Store) -> None:
    (store.folder / FOLDERS).write_text("no folder")
    with pytest.raises(
        NotKept, match=r"a.store/starts/00001 cannot be written \(Not a directory\); make room"
    ):
        store.begin(TrialRequest("seqs", 0, "max_seqs=64"), "", "2026-01-02T03:04:05Z")


def test_unreadable_table_is_refused(store: Store) -> None:
    store._database.execute("DROP TABLE runs")
    with (
        pytest.raises(BadInput, match=r"cannot be read \(no such table: runs\)"),
        Store.open(store.folder) as reader,
    ):
        reader.trials()


# -- killed at every write


# -- one at a time


def test_a_second_runner_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert holder(tmp_path) == os.getpid()
        with (
            pytest.raises(BadInput, match=f"process {os.getpid()} is running this study"),
            locked(tmp_path),
        ):
            pass
    assert holder(tmp_path) is None
    with locked(tmp_path):
        pass


def test_a_store_can_be_read_while_it_is_added_to(store: Store) -> None:
    request = TrialRequest("seqs", 0, "max_seqs=64")
    store.end(store.begin(request, "", "2026-01-02T03:04:05Z")[0], trial(request, 1.0))
    with Store.open(store.folder) as reader:
        assert list(reader.trials()) == [request]


# -- what is refused


def run(folder: Path, **parts: Any) -> None:
    file = read(folder, as_yaml(**STUDY | parts))
    asyncio.run(conductor.conduct(file, folder / "a.store", lambda engine, model: None, Silent()))


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that was carried out, with what its starts achieve said beforehand."""
    monkeypatch.setattr(conductor, "TrialRunner", Fake)
    run(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"decision": {"min_effect": 0.05, "repeats": {"least": 2, "most": 2}}},
            "decision.min_effect: is 0.05, but was 0.01 when {store} was begun; undo the change, "
            "or begin another",
        ),
        (
            {"models": STUDY.get("models", {}) | {"bf16": "Qwen/Qwen3-14B", "fp8": "x"}},
            "models.bf16: is Qwen/Qwen3-14B",
        ),
        (
            {"baseline": {"engine": "vllm", "model": "fp8"}},
            "baseline.model: is fp8, but was bf16",
        ),
    ],
)
def test_an_edited_study_is_refused_where_it_was_edited(
    begun: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        run(begun, **parts)
    assert message.format(store=begun / "a.store") in str(refused.value)
    assert f"{begun / 'study.yaml'}:" in str(refused.value)


def test_budget_report_and_what_is_expected_may_be_edited(begun: Path) -> None:
    stages = [{"name": "quantization", "choice": {"fp8": {"model": "fp8"}}, "expect": "fp8"}]
    run(begun, budget={"hours": 9}, report={"title": "Another"}, stages=stages)
    with Store.open(begun / "a.store") as store:
        assert store.facts["study"]["report"]["title"] == "Another"


def test_a_study_that_is_over_goes_on_with_added_arms_and_stages(begun: Path) -> None:
    first, *_ = STUDY["stages"]
    arms = {**first["choice"], "fewer": {"knobs": {"max_seqs": 8}}}
    cache = {"name": "cache", "choice": {"off": {"knobs": {"prefix_cache": False}}}}
    with Store.open(begun / "a.store") as store:
        before = store.trials()
    run(begun, stages=[cache, {**first, "choice": arms}])
    with Store.open(begun / "a.store") as store:
        found, _ = conductor.load_findings(store)
        after = store.trials()
    names = ["noise", "quantization", "quantization (added)", "cache", "confirmation"]
    assert [step.step.name for step in found.steps] == names
    assert found.open == ""
    measured = {request for request in before if request.step != "confirmation"}
    assert {request: after[request] for request in measured} == {
        request: before[request] for request in measured
    }
    confirmed = [request for request in before if request.step == "confirmation"]
    assert confirmed  # with the winner that the added arms may change
    assert all(after[request].folder != before[request].folder for request in confirmed)


@pytest.mark.parametrize(
    ("name", "now", "message"),
    [
        ("host", {"name": "elsewhere"}, "machine: "),
        ("builds", {"vllm": "9.9"}, "version of vllm: "),
        ("data", {"short": {"sha256": "0"}}, "data of short: "),
    ],
)
def test_another_machine_engine_or_data_set_is_refused(
    begun: Path, name: str, now: Any, message: str
) -> None:
    with Store.open(begun / "a.store") as store:
        store.note(name, store.facts[name] | now)
    with pytest.raises(BadInput) as refused:
        run(begun)
    assert message in str(refused.value)
    assert "begin another store" in str(refused.value)


def test_a_store_of_another_version_is_refused_and_left_as_it_is(begun: Path) -> None:
    with sqlite3.connect(begun / "a.store" / DATABASE) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(
        BadInput, match="is a store of version 99, and this loadgen reads version 2"
    ):
        run(begun)


def test_an_arm_that_would_be_served_otherwise_is_refused(begun: Path) -> None:
    with sqlite3.connect(begun / "a.store" / DATABASE) as database:
        database.execute("UPDATE starts SET config = 'another' WHERE step = 'quantization'")
    with pytest.raises(BadInput, match=r"quantization/(fp8|baseline) would be served differently"):
        run(begun)
    with Store.open(begun / "a.store") as store:  # what was found can be told all the same
        assert conductor.load_findings(store)[0].open == ""


def test_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a store of a study"), Store.open(tmp_path):
        pass
    (tmp_path / DATABASE).write_bytes(b"no database at all" * 100)
    with pytest.raises(BadInput, match="cannot be read"), Store.open(tmp_path):
        pass


# -- budget


def test_a_study_stops_where_its_budget_is_spent_and_goes_on_with_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conductor, "TrialRunner", Fake)
    run(tmp_path, budget={"hours": 0.05})  # three minutes, a minute for each start
    with Store.open(tmp_path / "a.store") as store:
        found, _ = conductor.load_findings(store)
        assert (len(found.trials), found.open) == (3, "the budget is spent")
    run(tmp_path, budget={"hours": 1})
    with Store.open(tmp_path / "a.store") as store:
        found, _ = conductor.load_findings(store)
        assert (len(found.trials), found.open) == (3 + 4 + 4, "")


class Endless(Fake):
    """A runner whose third start never ends."""

    async def run_trial(self, request: TrialRequest, *rest: Any, **options: Any) -> Trial:
        if (request.block, request.arm) == (2, "baseline"):
            await asyncio.sleep(10)
        return await super().run_trial(request, *rest, **options)


def test_budget_ends_a_start_that_never_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conductor, "TrialRunner", Endless)
    spent_s = 2 * 60 + 0.2
    run(tmp_path, budget={"hours": spent_s / 3600})
    assert "the budget is spent: the start that was running is given up" in caplog.text
    with Store.open(tmp_path / "a.store") as store:
        found, _ = conductor.load_findings(store)
        assert (len(found.trials), found.open) == (2, "the budget is spent")
        assert store.lost_s == pytest.approx(0.2, abs=1.0)
    run(
        tmp_path, budget={"hours": spent_s / 3600}
    )  # its time is spent, and it does not begin again
    assert caplog.text.count("is given up") == 1

"""Servers of a block side by side: their runs take turns, and disturbed rounds are set aside."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.lab.study.execute import trial_runner
from loadgen.lab.study.execute.conductor import SideBySide, Start, combined
from loadgen.lab.study.execute.score import objective_value
from loadgen.lab.study.execute.trial import Failure, Trial, TrialRequest, WorkloadRun
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.runner.start_engine import EngineSession
from tests.helpers.study_files import study
from tests.helpers.study_walks import summary

CPU: dict[str, Any] = {
    "hardware": {"name": "a CPU"},
    "engines": {"sim": {}},
    "models": {"m": "sim"},
    "baseline": {"engine": "sim", "model": "m"},
    "workloads": {"short": "short"},
    "budget": {"quiet_wait": 0},
}
SEQS = {"name": "seqs", "grid": {"max_seqs": [64]}}


class Process:
    """A server that tells little."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def version(self) -> str:
        return "1.2"

    def resolved(self) -> None:
        return None

    def flush(self) -> None:
        """It has no caches."""


def run(total: float, cores: float = 0.0) -> WorkloadRun:
    """A run of so many tokens/s beside which others used so many cores."""
    found = summary(total, loadgen={"disturbance": {"others_cores": cores, "cores": 2}})
    return WorkloadRun(found, f"{total}.json")


class Block:
    """A block of two arms whose runs are given.

    Args:
        rounds: How many rounds are wanted.
        cores: What others used in each round.
        quiet: Whether the machine is quiet between rounds.
        failing: The round in which the second arm dies; None: none.
    """

    def __init__(
        self, rounds: int, *cores: float, quiet: bool = True, failing: int | None = None
    ) -> None:
        self.log: list[tuple[str, int, list[int]]] = []
        self._cores, self._quiet, self._failing = cores, quiet, failing
        self.study = study(SEQS, **CPU, decision={"rounds": rounds})

    async def run(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
        """The trials of the block."""
        pids = iter(range(1, 9))

        @contextlib.asynccontextmanager
        async def started(
            engine: Any, begins: Any, timeout_s: float, tell: Any
        ) -> AsyncIterator[EngineSession]:
            yield EngineSession(engine, (Process(next(pids)),))

        async def load(
            runner: Any, engines: Any, arm: Any, name: str, *rest: Any, round_: int, foreign: Any
        ) -> Any:
            self.log.append((arm.name, round_, list(foreign)))
            failed = arm.name != "baseline" and round_ == self._failing
            failure = Failure("killed", "it died", transient=True) if failed else None
            cores = self._cores[round_] if round_ < len(self._cores) else 0.0
            return run(1000.0 + round_, cores), failure

        async def wait(runner: Any, tell: Any) -> bool:
            return self._quiet

        monkeypatch.setattr(trial_runner, "start_engines", started)
        monkeypatch.setattr(TrialRunner, "run_workload", load)
        monkeypatch.setattr(TrialRunner, "wait_for_quiet", wait)
        planner = Planner(self.study)
        runner = TrialRunner(self.study, planner, folder)
        starts = []
        for arm in planner.stage(0).arms:
            trial = runner.begun(TrialRequest("seqs", 0, arm.name), arm, folder / arm.name)
            starts.append(Start(arm, trial, folder / arm.name, lambda *told: None, asks=False))
        return await SideBySide(self.study, runner).run_block(starts)


def counted(trial: Trial) -> list[float]:
    """The values of the rounds that count."""
    return [each.summary["total_token_throughput"] for each in trial.runs["short"].rounds]


async def test_arms_take_turns_with_the_same_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = Block(3)
    trials = await block.run(tmp_path, monkeypatch)
    assert [{name for name, number, _ in block.log if number == each} for each in range(3)] == [
        {"baseline", "max_seqs=64"}
    ] * 3
    assert [counted(trial) for trial in trials] == [[1000.0, 1001.0, 1002.0]] * 2


async def test_server_of_another_arm_counts_as_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = Block(2)
    await block.run(tmp_path, monkeypatch)
    assert {(name, *foreign) for name, _, foreign in block.log} == {
        ("baseline", 2),
        ("max_seqs=64", 1),
    }


async def test_disturbed_round_is_set_aside_for_all_arms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = Block(2, 0.0, 1.0)
    trials = await block.run(tmp_path, monkeypatch)
    assert [counted(trial) for trial in trials] == [[1000.0, 1002.0]] * 2


async def test_least_disturbed_rounds_count_where_too_few_were_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = Block(2, 1.0, 0.9, 0.3, 0.8, 0.4)
    trials = await block.run(tmp_path, monkeypatch)
    assert [counted(trial) for trial in trials] == [[1002.0, 1004.0]] * 2
    found = trials[0].runs["short"].findings.disturbance
    assert found is not None
    assert found.others_cores == pytest.approx(0.35)
    assert not found.quiet


async def test_rounds_end_on_a_machine_that_is_never_quiet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = Block(2, 1.0, 1.0, quiet=False)
    assert [counted(trial) for trial in await block.run(tmp_path, monkeypatch)] == [
        [1000.0, 1001.0]
    ] * 2


async def test_other_arms_go_on_where_one_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole, failed = await Block(3, failing=1).run(tmp_path, monkeypatch)
    assert counted(whole) == [1000.0, 1001.0, 1002.0]
    assert failed.failure == Failure("killed", "it died", transient=True)


def test_value_of_rounds_is_their_geometric_mean() -> None:
    made = study(SEQS, **CPU)
    arm = Planner(made).noise().arms[0].spec
    assert objective_value(
        combined([run(1000.0), run(4000.0), run(2000.0)]), arm, made
    ) == pytest.approx(2000.0)


def test_numbers_shown_of_rounds_are_those_of_the_middle_one() -> None:
    assert combined([run(1000.0), run(4000.0), run(2000.0)]).path == "2000.0.json"


@pytest.mark.parametrize(
    "parts",
    [
        {"hardware": {"name": "a box", "devices": 4}},
        {
            "objective": {
                "workload": "short",
                "metric": "max_rate_under_slo",
                "slo": "ttft_p99<500ms",
            }
        },
    ],
)
def test_rounds_are_refused_where_arms_cannot_take_turns(parts: dict[str, Any]) -> None:
    with pytest.raises(AtFault) as refused:
        study(SEQS, **CPU | parts, decision={"rounds": 2})
    assert refused.value.path == ("decision", "rounds")

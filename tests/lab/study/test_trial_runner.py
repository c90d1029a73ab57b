"""A start runs its workloads so that no workload finds the cache of another."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.lab.study.execute import trial_runner
from loadgen.lab.study.execute.store import NotKept
from loadgen.lab.study.execute.trial import Failure, Trial, TrialRequest, WorkloadRun
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.plan.planner import Planner
from loadgen.report.result import RunResult
from loadgen.runner.start_engine import EngineSession
from tests.helpers.run_facts import answered, result
from tests.helpers.study_files import study
from tests.helpers.study_walks import summary

SEQS = {"name": "seqs", "grid": {"max_seqs": [64]}}
ENGINES = {"vllm": {}, "llamacpp": {}}
TWO_REPLICAS = {"engine": "vllm", "model": "bf16", "replicas": 2, "env": {"A": "1"}}


class Process:
    """A server that tells little."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def version(self) -> str:
        return "1.2"

    def resolved(self) -> Any:
        return {"settings": {"max-num-seqs": 64}}

    def flush(self) -> None:
        self._log.append("flush")


async def carried_out(
    monkeypatch: pytest.MonkeyPatch, folder: Path, engine: str, failing: str = ""
) -> tuple[Trial, list[str]]:
    """The trial of a baseline with two workloads, and what happened in order."""
    log: list[str] = []

    @contextlib.asynccontextmanager
    async def started(
        engine: Any, begins: Any, timeout_s: float, on_progress: Any
    ) -> AsyncIterator[EngineSession]:
        log.append("start")
        yield EngineSession(engine, (Process(log),))
        log.append("stop")

    async def load(
        self: TrialRunner, engines: EngineSession, arm: Any, name: str, *rest: Any
    ) -> tuple[WorkloadRun, Failure | None]:
        log.append(name)
        return WorkloadRun(summary(), f"{name}.json"), Failure(
            "killed", "died", True
        ) if name == failing else None

    monkeypatch.setattr(trial_runner, "start_engines", started)
    monkeypatch.setattr(TrialRunner, "run_workload", load)
    model = folder / "model.gguf"
    model.touch()
    served = {
        "engines": ENGINES,
        "models": {"m": str(model)},
        "baseline": {"engine": engine, "model": "m"},
    }
    made = study(SEQS, budget={"quiet_wait": 0}, **served)
    planner = Planner(made)
    arm = planner.confirmation().arms[0]
    place = folder / "start"
    place.mkdir(exist_ok=True)
    trial = await TrialRunner(made, planner, folder).run_trial(
        TrialRequest("confirmation", 0, "baseline"), arm, place, lambda *told: None
    )
    return trial, log


async def test_an_engine_that_can_empty_its_caches_does_so_between_workloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial, log = await carried_out(monkeypatch, tmp_path, "vllm")
    assert log == ["start", "short", "flush", "long", "stop"]
    assert list(trial.runs) == ["short", "long"]


async def test_server_without_a_flush_restarts_for_each_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial, log = await carried_out(monkeypatch, tmp_path, "llamacpp")
    assert log == ["start", "short", "stop", "start", "long", "stop"]
    assert list(trial.runs) == ["short", "long"]


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
async def test_workloads_after_a_failure_are_not_run(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial, log = await carried_out(monkeypatch, tmp_path, engine, failing="short")
    assert log == ["start", "short", "stop"]
    assert trial.failure == Failure("killed", "died", True)


async def test_server_facts_are_kept_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial, _ = await carried_out(monkeypatch, tmp_path, "vllm")
    assert (trial.build, trial.server_config, trial.folder) == (
        "1.2",
        {"max_num_seqs": 64},
        "start",
    )
    assert (tmp_path / "start" / "configuration.json").exists()


# -- what cannot be written


async def test_unwritable_file_ends_the_study_without_an_arm_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "start" / "configuration.json").mkdir(parents=True)
    with pytest.raises(
        NotKept, match=r"configuration.json cannot be written \(Is a directory\); make room"
    ):
        await carried_out(monkeypatch, tmp_path, "vllm")


@pytest.mark.parametrize("metric", ["total_tps_per_box", "max_rate_under_slo"])
async def test_a_run_whose_records_are_not_whole_is_no_result(
    metric: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For the highest rate the disk is full once the workload has run as it stands."""
    came = (
        [None, "No space left on device"]
        if metric == "max_rate_under_slo"
        else ["No space left on device"]
    )

    async def server(settings: RunSettings) -> Any:
        return settings

    async def measure(*given: Any, **named: Any) -> Any:
        return RunResult.from_dict(result([answered()], client={"records_error": came.pop(0)}))

    monkeypatch.setattr(trial_runner, "open_participant", contextlib.nullcontext)
    monkeypatch.setattr(trial_runner.run, "run", measure)
    made = study(SEQS, objective={"workload": "short", "metric": metric, "slo": "ttft_p99<500ms"})
    planner = Planner(made)
    engines: Any = SimpleNamespace(server=server, processes=[])
    with pytest.raises(NotKept) as refused:
        await TrialRunner(made, planner, tmp_path).run_workload(
            engines, planner.noise().arms[0], "short", tmp_path / "short", print
        )
    name = "max-rate-01.records.jsonl" if metric == "max_rate_under_slo" else "records.jsonl"
    assert str(refused.value).startswith(
        f"{tmp_path}/short/{name} cannot be written (No space left on device); make room"
    )


# -- the noise of starts


class TestStartSeed:
    """A server of a study has a seed of its own, which the study's seed decides."""

    def seeds(self, *requests: TrialRequest, seed: int = 0, replica: int = 0) -> list[str]:
        made = study(SEQS, decision={"seed": seed})
        runner = TrialRunner(made, Planner(made), Path("/nowhere"))
        return [runner._start_seed(request, replica) for request in requests]

    def test_differs_by_step_block_arm_and_attempt(self) -> None:
        starts = [
            TrialRequest("noise", 0, "baseline"),
            TrialRequest("seqs", 0, "baseline"),
            TrialRequest("seqs", 1, "baseline"),
            TrialRequest("seqs", 0, "max_seqs=64"),
            TrialRequest("seqs", 0, "baseline", attempt=1),
        ]
        assert len({*self.seeds(*starts), *self.seeds(*starts, replica=1)}) == 2 * len(starts)

    def test_is_repeated_by_the_same_study_alone(self) -> None:
        start = TrialRequest("noise", 2, "baseline")
        assert self.seeds(start, seed=7) == self.seeds(start, seed=7) != self.seeds(start, seed=8)

    async def test_is_a_variable_of_each_replica(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        begun: list[dict[str, str]] = []

        class Launcher:
            def __init__(self, folder: Path) -> None:
                pass

            def begin(self, engine: Any, *rest: Any, **named: Any) -> None:
                begun.append(dict(engine.env))

        @contextlib.asynccontextmanager
        async def started(engine: Any, begins: Any, *rest: Any) -> AsyncIterator[EngineSession]:
            for begin in begins:
                begin()
            yield EngineSession(engine, (Process([]),))

        async def load(self: TrialRunner, *rest: Any) -> tuple[WorkloadRun, Failure | None]:
            return WorkloadRun(summary(), "short.json"), None

        monkeypatch.setattr(trial_runner, "start_engines", started)
        monkeypatch.setattr(TrialRunner, "run_workload", load)
        made = study(SEQS, baseline=TWO_REPLICAS, budget={"quiet_wait": 0})
        planner = Planner(made)
        runner, request = TrialRunner(made, planner, tmp_path), TrialRequest("noise", 0, "baseline")
        runner._launcher = Launcher
        (tmp_path / "start").mkdir()
        await runner.run_trial(
            request, planner.noise().arms[0], tmp_path / "start", lambda *told: None
        )
        seeds = [runner._start_seed(request, replica) for replica in (0, 1)]
        assert begun == [{"A": "1", trial_runner.START_SEED: seed} for seed in seeds]

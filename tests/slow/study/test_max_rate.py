"""The search for the highest rate within limits, in virtual time with known capacities."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from loadgen.analysis.search import levels
from loadgen.analysis.search.criteria import RequestShare, joint_criterion
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.levels import MAX_RUN_S, MIN_SOJOURNS
from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.record_row import SIZE_BYTES
from loadgen.errors import BadInput, LoadgenError
from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.execute.score import search_max_rate
from loadgen.lab.study.execute.trial import MaxRate
from loadgen.lab.study.plan.estimate import Effort
from loadgen.lab.study.plan.planner import plan
from loadgen.metrics.progress import Progress
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.runner.run_result import Result
from loadgen.testing.memory import Reply, Server
from loadgen.testing.memory_servers import answered, planned, queued
from tests.helpers.study_files import as_yaml, read, study
from tests.helpers.study_walks import walked
from tests.helpers.virtual_bench import Bench
from tests.helpers.virtual_runs import MS, S

LIMITS = joint_criterion("ttft_p99<500ms")
COARSE = Effort(0.05)
WORKLOAD = RunSettings(base_url="http://memory", num_prompts=40, max_concurrency=None)


def one_at_a_time() -> Server:
    """Ten requests a second, and no more."""
    return queued(lambda index: 100 * MS)


def long_answers(seconds: int) -> Server:
    """Begins ten answers a second, and no more, each of which goes on for so long."""
    free_ns = 0

    def serve(index: int, body: bytes, arrived_ns: int) -> Reply:
        nonlocal free_ns
        free_ns = max(arrived_ns, free_ns) + 100 * MS
        return answered([free_ns, free_ns + seconds * S])

    return serve


async def found(
    bench: Bench,
    folder: Path,
    *,
    start: float = 7.0,
    limits: RequestShare = LIMITS,
    **workload: Any,
) -> MaxRate:
    settings = WORKLOAD.replace(**workload)
    return await search_max_rate(
        bench.measure, settings, limits, COARSE, folder=folder, start=start
    )


@pytest.mark.parametrize("start", [1.3, 7.0, 90.0])
async def test_evenly_spaced_requests_are_served_up_to_the_capacity(
    tmp_path: Path, start: float
) -> None:
    """Ten a second wait for nothing; with more of them a queue grows, and after a minute all are
    late.
    """
    ended = await found(Bench(one_at_a_time), tmp_path, start=start, burstiness=math.inf)
    assert ended.end == "edge"
    assert ended.rate <= 10.0 * 1.001 < ended.fails * 1.001 <= 1.051 * ended.rate
    assert ended.tried[0][0] == start
    assert (ended.attainment, ended.limits, ended.resolution) == (0.99, "ttft_p99<500ms", 0.05)
    assert from_json_values(orjson.loads(orjson.dumps(to_json_values(ended))), MaxRate) == ended


def share_served(rate: float, within_s: float) -> float:
    """Of Poisson arrivals, those that a server of 100 ms each has answered in time, in the long
    run (Lindley, 1952).
    """
    rng = np.random.default_rng(3)
    walk = np.concatenate(([0.0], np.cumsum(0.1 - rng.exponential(1 / rate, 400_000))))
    wait = walk - np.minimum.accumulate(walk)
    return float(np.mean(wait + 0.1 < within_s))


async def test_poisson_arrivals_need_room_and_what_is_shown_is_no_more_than_the_truth(
    tmp_path: Path,
) -> None:
    ended = await found(Bench(one_at_a_time), tmp_path, start=5.0)
    assert ended.end == "edge"
    assert share_served(ended.rate, 0.5) >= 0.99
    assert share_served(1.5 * ended.fails, 0.5) < 0.99


async def test_runs_are_long_enough_and_have_their_own_seeds(tmp_path: Path) -> None:
    bench = Bench(one_at_a_time)
    await found(
        bench,
        tmp_path,
        start=20.0,
        burstiness=math.inf,
        seed=5,
        ramp_up_strategy="linear",
        duration=3.0,
        ramp_up_start_rps=1.0,
        ramp_up_end_rps=2.0,
    )
    for number, asked in enumerate(bench.asked, 1):
        assert asked.num_prompts == max(786, math.ceil(60 * asked.request_rate))
        assert (asked.seed_arrivals, asked.seed_prompts, asked.seed_order) == (5 + number,) * 3
        assert (asked.burstiness, asked.ramp_up_strategy, asked.duration) == (math.inf, None, None)


async def test_a_run_is_made_longer_where_its_beginning_would_decide(tmp_path: Path) -> None:
    """Answers take 10 s: a minute is six of them one after the other, which are few blocks."""
    bench = Bench(lambda: long_answers(10))
    ended = await found(
        bench, tmp_path, start=9.0, burstiness=math.inf, limits=joint_criterion("ttft_p90<500ms")
    )
    lengths = [asked.num_prompts / asked.request_rate for asked in bench.asked if asked.num_prompts]
    assert lengths[0] == pytest.approx(60.0, abs=1.0)
    assert bench.asked[1].request_rate == 9.0
    assert all(length >= 23 * 10.0 > MIN_SOJOURNS * 10.0 for length in lengths[1:])
    assert ended.rate <= 10.01 <= ended.fails


async def test_a_run_that_cannot_be_made_longer_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "MAX_REQUESTS", 600)
    bench = Bench(lambda: long_answers(20))
    ended = await found(bench, tmp_path, start=9.9, burstiness=math.inf)
    assert ended.notes[0].startswith("at 9.9")
    assert ended.notes[0].endswith("req/s a run was too short (a request took 20 s)")


async def test_where_no_rate_is_good_enough_there_is_none(tmp_path: Path) -> None:
    bench = Bench(lambda: planned(lambda index: [600 * MS]))
    ended = await found(bench, tmp_path, start=1.0)
    assert (ended.rate, ended.end) == (0.0, "none")
    assert ended.tried[-1][0] >= LIMITS.min_requests / MAX_RUN_S


async def test_search_out_of_runs_ends_at_a_floor(tmp_path: Path) -> None:
    bench, few = Bench(lambda: planned(lambda index: [100 * MS])), Effort(1.0)
    ended = await search_max_rate(
        bench.measure,
        WORKLOAD,
        joint_criterion("ttft_median<500ms"),
        few,
        folder=tmp_path,
        start=0.1,
    )
    assert (ended.end, ended.fails) == ("floor", None)
    assert len(ended.tried) == few.max_runs == 8


async def test_a_finer_search_ends_nearer_to_the_edge(tmp_path: Path) -> None:
    bench, fine = Bench(one_at_a_time), Effort(0.02)
    ended = await search_max_rate(
        bench.measure,
        WORKLOAD.replace(burstiness=math.inf),
        LIMITS,
        fine,
        folder=tmp_path,
        start=9.0,
    )
    assert ended.fails <= 1.02 * ended.rate
    assert ended.runs == len(ended.tried) <= fine.max_runs


def without_the_last(path: Path) -> None:
    """Take the last row out of a journal, whose trailer is its last line."""
    journal = path.read_bytes()
    end = journal.rindex(b"\n", 0, -1)
    begin = last = journal.index(b"\n") + 1
    while begin < end:
        last = begin
        begin += int.from_bytes(journal[begin : begin + SIZE_BYTES], sys.byteorder)
    path.write_bytes(journal[:last] + journal[end:])


async def test_records_that_are_not_all_there_end_the_search(tmp_path: Path) -> None:
    bench = Bench(one_at_a_time)

    async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
        result = await bench.measure(settings, name, stop)
        without_the_last(Path(str(settings.records)))
        return result

    with pytest.raises(
        LoadgenError,
        match="the run at 7 req/s is inconclusive: only 785 of 786 requests have a record",
    ):
        await search_max_rate(measure, WORKLOAD, LIMITS, COARSE, folder=tmp_path, start=7.0)


def failed_check(group: str, name: str) -> dict[str, Any]:
    return Check(name, False, "seen", "allowed", "do", group=group).to_dict()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"partial": "interrupted"}, "the run at 7 req/s is inconclusive: interrupted"),
        (
            {"verdict": "INVALID", "checks": [failed_check("A", "outcomes")]},
            "the run at 7 req/s is inconclusive: outcomes",
        ),
    ],
)
async def test_inconclusive_run_ends_the_search(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    with pytest.raises(LoadgenError, match=why):
        await found(
            Bench(one_at_a_time, distort=lambda data: data["loadgen"].update(change)), tmp_path
        )


async def test_disturbed_client_is_noted(tmp_path: Path) -> None:
    def distort(data: dict[str, Any]) -> None:
        data["loadgen"]["checks"] = [*data["loadgen"]["checks"], failed_check("C", "loop stall")]

    bench = Bench(one_at_a_time, distort=distort)
    ended = await search_max_rate(
        bench.measure, WORKLOAD, LIMITS, Effort(1.0), folder=tmp_path, start=7.0
    )
    note = "at 7, 3.5 req/s the client or the server was disturbed (loop stall)"
    assert ended.notes == [note]


async def test_a_run_that_is_stopped_for_what_it_has_missed_does_not_meet_its_limits(
    tmp_path: Path,
) -> None:
    """What is kept of it is partial, which is no fault here."""
    bench = Bench(one_at_a_time)

    async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
        result = await bench.measure(settings, name, stop)
        if reason := stop(Progress("running", in_flight=3)):
            result.data["loadgen"]["partial"] = reason
        return result

    settings = WORKLOAD.replace(burstiness=math.inf)
    ended = await search_max_rate(measure, settings, LIMITS, COARSE, folder=tmp_path, start=7.0)
    assert ended.end == "edge"
    assert ended.rate <= 10.01


class TestStudyOfTheHighestRate:
    OBJECTIVE = {"workload": "short", "metric": "max_rate_under_slo", "slo": "ttft_p99<500ms"}  # noqa: RUF012 - never changed

    @staticmethod
    def found(rate: float, end: str = "edge", fails: float | None = None) -> dict[str, Any]:
        tried = [[rate or 0.3, bool(rate)]]
        return {
            "rate": rate,
            "end": end,
            "fails": fails,
            "tried": tried,
            "limits": "ttft_p99<500ms",
        }

    def test_the_rate_decides_and_a_lower_bound_is_told(self) -> None:
        def truth(request):
            rate = (12.0 if request.arm == "max_seqs=128" else 10.0) * (
                1 + 0.001 * ((3 * request.block) % 4)
            )
            found = (
                self.found(rate, "floor", 13.0)
                if request.arm == "max_seqs=128"
                else self.found(rate)
            )
            return {"loadgen": {"max_rate": found}}

        step = walked(study(objective=self.OBJECTIVE), truth).steps[1]
        won = step.arm("max_seqs=128")
        assert won.verdict is Verdict.ADOPTED
        assert won.values[0] == pytest.approx(12.0 * 4)  # so often it fits into the box
        assert won.why == "only a lower bound, it failed at 13 req/s"

    def test_an_arm_that_meets_its_limits_at_no_rate_is_infeasible(self) -> None:
        def truth(request):
            rate = (
                0.0
                if request.arm == "max_seqs=128"
                else 10.0 * (1 + 0.001 * ((3 * request.block) % 4))
            )
            return {"loadgen": {"max_rate": self.found(rate, "edge" if rate else "none")}}

        arm = walked(study(objective=self.OBJECTIVE), truth).steps[1].arm("max_seqs=128")
        assert arm.verdict is Verdict.INFEASIBLE
        assert arm.why == "no rate meets ttft_p99<500ms, down to 0.3 req/s"

    def test_arm_that_meets_the_limits_beats_a_baseline_that_does_not(self) -> None:
        def truth(request):
            rate = 10.0 if request.arm.endswith("max_seqs=128") else 0.0
            return {"loadgen": {"max_rate": self.found(rate, "edge" if rate else "none")}}

        ended = walked(study(objective=self.OBJECTIVE), truth)
        won = ended.steps[1].arm("max_seqs=128")
        assert (won.verdict, won.why) == (Verdict.ADOPTED, "it meets limits that baseline misses")
        assert ended.steps[1].arm("max_seqs=64").verdict is Verdict.INFEASIBLE
        assert len(won.trials) == 2
        assert ended.confirmation is not None
        assert ended.confirmation.won == ("seqs/max_seqs=128",)

    def test_a_plan_says_how_many_runs_it_takes(self) -> None:
        load = plan(study(objective=self.OBJECTIVE)).steps[0].arms[0].loads["short"]
        assert load is not None
        assert load.basis.endswith("; then 9 to 22 runs of 60 s, or of 786 requests")
        assert load.min_s > 9 * 60

    def test_refused_limit_names_its_line(self, tmp_path: Path) -> None:
        objective = {"workload": "short", "metric": "max_rate_under_slo", "slo": "ttft_mean<500ms"}
        why = r"study.yaml:\d+: objective: 'ttft_mean<500ms' cannot be a limit of goodput: a mean"
        with pytest.raises(BadInput, match=why):
            read(tmp_path, as_yaml(objective=objective))
        assert read(
            tmp_path, as_yaml(objective=objective | {"metric": "e2el_p50"})
        ).study.objective.slo

    def test_a_trace_has_no_rate_to_be_looked_for(self, tmp_path: Path) -> None:
        trace = {
            "short": {
                "dataset_name": "trace",
                "dataset_path": "t.jsonl",
                "trace_format": "mooncake",
            }
        }
        file = read(tmp_path, as_yaml(objective=self.OBJECTIVE, workloads=trace))
        with (
            pytest.raises(
                BadInput, match=r"objective\.workload: short is a trace, which says when"
            ),
            file.named(),
        ):
            plan(file.study)

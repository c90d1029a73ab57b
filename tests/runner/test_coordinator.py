"""The coordinator: all participants start at one time, once all are ready, and stop if one is
lost.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError, Unreachable, WorkerDied
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.progress import DONE, Progress
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.server.series import ScrapeOrder, Source
from loadgen.metrics.server.telemetry import FILE_NAME
from loadgen.runner import coordinator, run_result
from loadgen.runner.coordinator import coordinate
from loadgen.runner.job import Job
from loadgen.runner.participant import Group, Proxy
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from tests.helpers.run_facts import answered, heading
from tests.helpers.server_scrapes import URL, scrape

SCHEDULE = Schedule.burst(4)
TARGET = Target("http://memory", "m", CHAT)


class Fake(Proxy):
    """A participant that does each step when it is let."""

    pid: int | None = None

    def __init__(
        self, index: int, log: list[str], fails: str = "", error: Exception | None = None
    ) -> None:
        super().__init__()
        self._log, self._fails, self._error = log, fails, error
        self.name = f"{index}"
        self.stopped: str | None = None
        self.told = Progress("connecting")

    async def call(self, step: str, *arguments: object) -> object:
        if step == "begin":
            return None
        self._log.append(f"{step} {self.name}")
        await asyncio.sleep(0)
        if step == self._fails:
            assert self._error is not None
            raise self._error
        self._log.append(f"{step} {self.name} done")
        return self._measure(*arguments) if step == "carry_out" else None  # type: ignore[arg-type]

    def _measure(self, start_ns: int) -> Measurement:
        self.start_ns = start_ns
        recorder = Recorder(start_ns, 2)
        for index in SCHEDULE.stripe(self.job.partition.index, self.job.partition.count).numbers:
            recorder.add(answered(index))
        shard = WorkerReport(
            number=self.job.partition.index,
            client=ClientUsage(cpu_s=1.0),
            schedule_sha256=SCHEDULE.sha256,
        )
        return Measurement(recorder.snapshot(self.stopped), RunTrailer(workers=(shard,)))

    def progress(self) -> Progress:
        return self.told

    def send(self, command: str, reason: str) -> None:
        assert command == "stop"
        self.stopped = reason

    def release(self) -> None:
        self._log.append(f"release {self.name}")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    request_store.write(tmp_path, [Prompt("a", 1, 1, "t")] * 4, TARGET.body, dict, 4)
    request_store.write_schedule(tmp_path, SCHEDULE)
    settings = RunSettings(num_prompts=4, max_concurrency=4)
    return Job(heading(settings, SCHEDULE), (TARGET,), tmp_path)


def parts(log: list[str], **of_the_second: object) -> list[Fake]:
    return [Fake(0, log), Fake(1, log, **of_the_second)]  # type: ignore[arg-type]


async def run(
    participants: list[Fake],
    job: Job,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Measurement:
    async def prepared() -> None:
        pass

    participant = (
        participants[0] if len(participants) == 1 else Group(participants, len(participants))
    )
    return await coordinate(participant, job, prepared(), on_progress)


async def test_every_participant_ends_a_step_before_the_next_begins(job: Job) -> None:
    log: list[str] = []
    await run(parts(log), job)
    steps = [line.split()[0] for line in log]
    taken = [step for step in ("check_ready", "warm_up", "connect", "carry_out") for _ in range(4)]
    assert steps == [*taken, "release", "release"]


async def test_all_are_given_one_start(job: Job) -> None:
    made = parts([])
    await run(made, job)
    assert made[0].start_ns == made[1].start_ns


async def test_progress_is_reported_only_after_requests_are_prepared(job: Job) -> None:
    told: list[Progress] = []
    seen: list[list[Progress]] = []

    async def prepared() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        seen.append(list(told))

    await coordinate(Group(parts([]), 2), job, prepared(), told.append)
    assert seen == [[]]
    assert told
    assert told[0].measuring


async def test_the_last_that_is_told_is_of_the_whole(job: Job) -> None:
    told: list[Progress] = []

    async def prepared() -> None:
        pass

    made = parts([])
    for part in made:
        part.told = Progress("draining", ended=2, ok=2)
    await coordinate(Group(made, 2), job, prepared(), told.append)
    assert told[-1] == Progress(DONE, ended=4, ok=4)


async def test_results_of_participants_are_merged(job: Job) -> None:
    measured = await run(parts([]), job)
    assert measured.snapshot.outcomes == {"ok": 4}
    assert sorted(measured.snapshot.index.tolist()) == [0, 1, 2, 3]
    assert [worker.number for worker in measured.trailer.workers] == [0, 1]


@pytest.mark.parametrize("step", ["check_ready", "warm_up", "connect"])
async def test_an_error_before_the_clock_ends_all(job: Job, step: str) -> None:
    log: list[str] = []
    with pytest.raises(Unreachable, match="no"):
        await run(parts(log, fails=step, error=Unreachable("no")), job)
    assert not any("carry_out" in line for line in log)


async def test_participant_that_dies_stops_the_others(job: Job) -> None:
    died = WorkerDied("worker 2 of 2", "was killed by signal 9")
    made = parts([], fails="carry_out", error=died)
    measured = await run(made, job)
    assert made[0].stopped == "worker 2 of 2 was killed by signal 9"
    assert (measured.snapshot.scheduled, measured.snapshot.outcomes) == (4, {"ok": 2})
    assert measured.snapshot.partial == "worker 2 of 2 was killed by signal 9"
    assert [worker.lost for worker in measured.trailer.workers] == [None, "was killed by signal 9"]


async def test_recovery_keeps_the_readable_records_of_a_worker(job: Job, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.part2"
    with RecordWriter.optional(path) as writer:
        assert writer
        writer.begin(job.header, 5, 4, [], None, Partition(1, 2))
        writer.write(answered(1))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(100))
    died = WorkerDied("worker 2 of 2", "was killed by signal 9")
    found = run_result.recover_worker(
        replace(job, records=tmp_path / "r.jsonl", partition=Partition(1, 2)), 1, 5, died
    )
    assert found.snapshot.outcomes == {"ok": 1}
    assert (
        found.trailer.records_error
        == f"{path}: the row at byte {size} is no part of a file of records"
    )
    assert [worker.lost for worker in found.trailer.workers] == ["was killed by signal 9"]


async def test_loss_of_the_only_participant_is_an_error(job: Job) -> None:
    alone = Fake(0, [], "carry_out", WorkerDied("the measuring process", "ended with code 1"))
    with pytest.raises(
        LoadgenError, match="the measuring process ended with code 1: nothing of the run is left"
    ):
        await run([alone], job)


class FakeScraper:
    """Takes the place of the process that scrapes server metrics."""

    def __init__(self, order: ScrapeOrder | None, process: object) -> None:
        assert order
        self._path = order.folder / FILE_NAME

    async def __aenter__(self) -> "FakeScraper":
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def scrape_first(self) -> None:
        self._path.write_bytes(orjson.dumps(scrape(1, running=3).to_dict()) + b"\n")

    async def scrape_last(self) -> None:
        pass


async def test_progress_has_the_latest_server_metrics(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MetricsScraper", FakeScraper)
    shown: list[Progress] = []
    participants = parts([])
    order = ScrapeOrder((Source(URL, TARGET.url),), job.folder)
    await run(participants, replace(job, scraping=order), shown.append)
    assert shown[0].server == {}
    assert shown[-1].server == {"running": 3}
    assert [participant.job.scraping for participant in participants] == [None, None]


def test_a_group_shares_partitions_records_and_pids(job: Job) -> None:
    made = parts([])
    made[0].pid, made[1].pid = 7, 8
    first, second = Group(made, 2).shares(replace(job, records=job.folder / "r.jsonl"))
    assert (first.partition, second.partition) == (Partition(0, 2), Partition(1, 2))
    assert [own.shard and own.shard.name for own in (first, second)] == [
        "r.jsonl",
        "r.jsonl.part2",
    ]
    assert (first.sibling_pids, second.sibling_pids) == ((8,), (7,))


async def test_a_condition_of_the_settings_stops_the_run_and_is_kept(job: Job) -> None:
    settings = job.settings.replace(stop_when="errors>2,error_rate>5%")
    (part,) = [Fake(0, [])]
    part.told = Progress("running", 5.0, ended=40, failures={"refused": 4})
    measurement = await run([part], replace(job, header=heading(settings, SCHEDULE)))
    stopped = measurement.trailer.stopped
    assert stopped is not None
    assert (stopped.condition, stopped.at_s, stopped.value) == ("errors>2", 5.0, 4)
    assert measurement.snapshot.partial == str(stopped) == "--stop-when errors>2: 4 at 5.0 s"

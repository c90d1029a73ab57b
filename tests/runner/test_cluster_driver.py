"""The cluster driver: addresses, cases without Ray, and the files sent to machines."""

import asyncio
import functools
import sys
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError, WorkerDied
from loadgen.runner import cluster_driver
from loadgen.runner.cluster_node import Node
from loadgen.runner.job import Job
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.prompt import Prompt
from loadgen.workload.request_store import SCHEDULE, WARMUP_PREFIX, RequestFiles, Requests
from tests.helpers.run_facts import heading

URL = "http://10.0.0.1:8000"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"ray": "auto"},
            "--ray: given without a server that the machines of the cluster can reach",
        ),
        ({"ray": "auto", "engine": "sim"}, "--ray: given without a server"),
        ({"ray": "ray://head:10001", "base_url": URL}, "--ray: ray:// addresses a proxy"),
        ({"ray_nodes": 2}, "--ray-nodes: given without --ray"),
        ({"ray": "auto", "base_url": URL, "ray_nodes": 0}, "--ray-nodes: 0 is out of range"),
        (
            {"ray": "auto", "base_url": URL, "capture": "c.jsonl"},
            "--capture: given together with --ray",
        ),
        (
            {"ray": "auto", "base_url": URL, "ray_nodes": 3, "workers": 2, "max_concurrency": 5},
            "--workers: 3 machines of 2 processes cannot share 5 requests in flight; use at most "
            "5 in all",
        ),
        (
            {"ray": "auto", "base_url": URL, "capture": "c.jsonl", "workers": "auto"},
            "--capture: given together with --ray",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, said):
    with pytest.raises(BadInput) as refused:
        RunSettings(**settings).checked()
    assert str(refused.value).startswith(said)


class ActorDiedError(Exception): ...


class TaskError(Exception): ...


ERRORS = SimpleNamespace(
    RayError=(ActorDiedError, TaskError), RayTaskError=TaskError, put=lambda data: data
)


class Actor:
    """Ray's handle of a node that answers each call with what it is given, or raises it."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.called = []

    def __getattr__(self, name):
        return SimpleNamespace(remote=functools.partial(self._called, name))

    async def _called(self, name, *arguments):
        self.called.append(name)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """Makes the part of a node of two, whose actor gives these answers."""
    monkeypatch.setattr(cluster_driver, "_ray", lambda module="ray": ERRORS)

    def made(*answers):
        found = cluster_driver.NodeProxy(Actor(*answers), "10.0.0.3", 1)
        settings = RunSettings(num_prompts=4)
        job = Job(heading(settings, Schedule.burst(4)), (), tmp_path, partition=Partition(1, 2))
        found.job = replace(job, records=tmp_path / "r.jsonl")
        return found

    return made


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ActorDiedError("the actor died\nbecause"), "part 2 of 2 was lost with node 10.0.0.3"),
        (
            TaskError("Traceback\n  ...\nOSError: full\n"),
            "part 2 of 2 failed on node 10.0.0.3: OSError: full",
        ),
    ],
)
async def test_whatever_ray_tells_of_a_node_is_its_loss_in_one_line(remote, error, said):
    with pytest.raises(WorkerDied) as died:
        await remote(error)._ask("progress")
    assert str(died.value) == said


async def test_records_of_another_run_are_not_what_a_lost_node_has_left(remote):
    part = remote(None, ActorDiedError("gone"))
    part.job.shard.write_text("of yesterday")
    await part.take("check_ready")
    assert part.job.shard.read_bytes() == b""
    (part.job.folder).mkdir(exist_ok=True)
    request_store.write_schedule(part.job.folder, Schedule.burst(4))
    measurement = await part.carry_out(0)
    assert (
        measurement.snapshot.partial
        == "part 2 of 2 was lost with node 10.0.0.3; what it had measured is lost"
    )
    assert measurement.snapshot.ended == 0
    assert [worker.lost for worker in measurement.trailer.workers] == [
        "was lost with node 10.0.0.3; what it had measured is lost"
    ]


async def test_a_file_that_cannot_be_written_is_refused_before_the_node_is_asked(remote, tmp_path):
    part = remote()
    part.job.shard.mkdir()
    with pytest.raises(BadInput, match="--records"):
        await part.take("check_ready")


async def connected(address):
    async with cluster_driver.open_nodes(RunSettings(ray=address, base_url=URL)):
        pass


async def test_without_ray_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match="--ray: a cluster needs the package ray; pip install ray"):
        await connected("auto")


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:six"])
def test_invalid_listen_address_is_refused(address):
    with pytest.raises(BadInput, match="is not an address; write HOST:PORT"):
        cluster_driver._check_listens(address)


@pytest.mark.integration
def test_a_cluster_that_is_not_there_is_refused_at_once():
    with pytest.raises(BadInput, match=r"no cluster at 127.0.0.1:1 \(Connection refused\)"):
        cluster_driver._check_listens("127.0.0.1:1")


def test_the_first_machines_are_those_of_the_lowest_addresses(monkeypatch):
    addresses = ("head", "10.0.0.10", "fd00::1", "10.0.0.9", "9.0.0.1")
    found = [
        {"Alive": address != "9.0.0.1", "NodeManagerAddress": address} for address in addresses
    ]
    monkeypatch.setattr(cluster_driver, "_ray", lambda: SimpleNamespace(nodes=lambda: found))
    chosen = cluster_driver._chosen(RunSettings(ray="auto"))
    assert [node["NodeManagerAddress"] for node in chosen] == [
        "10.0.0.9",
        "10.0.0.10",
        "fd00::1",
        "head",
    ]


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (
            {"a": "1.0", "b": None},
            "node b has no loadgen, and here is 1.0; install loadgen 1.0 into the environment",
        ),
        ({"a": "1.0", "b": "1.1"}, "node b has loadgen 1.1, and here is 1.0"),
    ],
)
def test_a_node_without_the_same_loadgen_is_named(monkeypatch, versions, said):
    monkeypatch.setattr(cluster_driver.importlib.metadata, "version", lambda name: "1.0")
    with pytest.raises(BadInput, match=said):
        cluster_driver._check_versions(versions)


def test_nodes_with_the_same_loadgen_are_taken(monkeypatch):
    monkeypatch.setattr(cluster_driver.importlib.metadata, "version", lambda name: "1.0")
    cluster_driver._check_versions({"a": "1.0", "b": "1.0"})


@pytest.mark.parametrize(
    ("settings", "cores", "workers"),
    [
        ({"workers": 2}, [1, 64], 2),
        ({"workers": "auto"}, [4, 64], 3),
        ({"workers": "auto"}, [1, 64], 1),
        ({"workers": "auto", "max_concurrency": 5}, [64, 64], 2),
        ({"workers": "auto", "num_prompts": 7}, [64, 64], 3),
    ],
)
def test_each_node_has_as_many_workers(settings, cores, workers):
    assert cluster_driver._workers(RunSettings(**settings), cores) == workers


def test_more_workers_than_may_be_in_flight_are_refused():
    with pytest.raises(
        BadInput,
        match=r"2 machines of 1 processes cannot share 1 requests in flight; use at most 1 in all",
    ):
        cluster_driver._workers(RunSettings(workers="auto", max_concurrency=1), [64, 64])


class Machine:
    """Ray's handle of a node that keeps the requests in a folder; each of its calls may be made
    to fail.
    """

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.error = folder, None
        self._node = Node()
        self._node._folder = folder
        self.wanted = 0  # rows with which a run ends there

    def __getattr__(self, name):
        return SimpleNamespace(remote=functools.partial(self._called, name))

    async def _called(self, name, *arguments):
        if self.error is not None:
            raise self.error
        if name == "begin":
            return await self._node.write(SCHEDULE, arguments[2], begins=True)
        if name == "write":
            return await self._node.write(*arguments)
        while name == "carry_out":
            if len(self.sources) >= self.wanted:
                return LoadgenError("all have come")
            await asyncio.sleep(0)
        return None

    @property
    def sources(self):
        """Of its requests; each body is read too."""
        with Requests(self.folder) as read:
            assert [read.body(row) for row in range(len(read))] == [
                source.encode() for source in read.sources()
            ]
            return read.sources()


def made(*rows):
    return [Prompt("x", 1, 1, f"row {row}") for row in rows]


def source(prompt):
    return prompt.source.encode()


@pytest.fixture
def handing(tmp_path, monkeypatch):
    """Two machines, the group of them, and the folder of requests that they have been handed,
    three rows.
    """
    monkeypatch.setattr(cluster_driver, "_ray", lambda module="ray": ERRORS)
    monkeypatch.setattr(cluster_driver, "CHUNK_BYTES", 8)
    monkeypatch.setattr(cluster_driver, "PROGRESS_S", 0)
    folder = tmp_path / "here"
    folder.mkdir()
    request_store.write(folder, made(0, 1, 2), source, dict, 3)
    request_store.write_about(folder, request_store.read_about(folder) | {"further": True})
    with RequestFiles(folder, source, WARMUP_PREFIX) as files:
        files.add(made(9))
    (folder / "telemetry.jsonl").write_text("what a scraper has heard")
    machines = [Machine(tmp_path / name) for name in ("a", "b")]
    parts = [
        cluster_driver.NodeProxy(machine, host, 1)
        for machine, host in zip(machines, ("10.0.0.2", "10.0.0.3"), strict=True)
    ]
    group = cluster_driver.NodeGroup(parts, 1)
    request_store.write_schedule(folder, Schedule.burst(3))

    async def begin():
        await group.begin(Job(heading(RunSettings(num_prompts=3), Schedule.burst(3)), (), folder))
        await group.take("check_ready")

    asyncio.run(begin())
    return group, machines, folder


def add(folder, *rows):
    with RequestFiles(folder, source, further=True) as files:
        files.add(made(*rows))


def test_machines_are_handed_the_files_of_the_requests_and_no_other(handing):
    _, machines, folder = handing
    ours = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name != "telemetry.jsonl"
    }
    # An empty file is not sent: nobody reads it.
    ours = {name: data for name, data in ours.items() if data}
    assert len(ours) == 8
    for machine in machines:
        assert {path.name: path.read_bytes() for path in machine.folder.iterdir()} == ours


async def test_requests_that_are_made_meanwhile_reach_all_machines(handing):
    group, machines, folder = handing
    for machine in machines:
        machine.wanted = 5
    add(folder, 3, 4)
    with pytest.raises(LoadgenError, match="all have come"):
        await group.carry_out(0)
    assert [machine.sources for machine in machines] == [[f"row {row}" for row in range(5)]] * 2


@pytest.mark.parametrize("lost", [0, 1])
async def test_lost_machine_gets_no_more_files_and_others_no_repeats(handing, lost):
    group, machines, folder = handing
    machines[lost].error = ActorDiedError("gone")
    add(folder, 3)
    with pytest.raises(WorkerDied):
        await group._send_files()
    add(folder, 4)
    for _ in range(3):
        await group._send_files()
    assert machines[1 - lost].sources == [f"row {row}" for row in range(5)]

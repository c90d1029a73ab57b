"""Nodes: machines of a Ray cluster that share the requests of a run, each with workers of its own.

Ray carries the job, the file of the requests and what was measured; how a run is shared, started and merged is as among
the workers of one machine.
"""

import asyncio
import contextlib
import importlib.metadata
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadgen.config.settings import RunSettings
from loadgen.config.validate import check_share
from loadgen.errors import BadInput, LoadgenError, WorkerDied
from loadgen.metrics.progress import PHASES, Progress
from loadgen.runner.cluster import node_facts
from loadgen.runner.cluster.actor import Node
from loadgen.runner.coordinator import PROGRESS_S, conduct
from loadgen.runner.measurement import Job, Measured
from loadgen.runner.participant import Group, Proxy
from loadgen.runner.workers import auto
from loadgen.util import private_files
from loadgen.util.clock import now_ns
from loadgen.util.packages import require
from loadgen.util.tasks import background_tasks, gather_or_cancel
from loadgen.workload import request_store

if TYPE_CHECKING:
    from pathlib import Path

CHUNK_BYTES = 32 << 20
PATIENCE_S = 30.0  # for a machine to say what it is, or to put its workers away
CONNECT_S = 5.0
FLAG = "--ray"


class Remote(Proxy):
    """A `Node` on another machine, as a part of the run here.

    Args:
        actor: Ray's handle of it.
        host: The address of its machine.
        workers: How many it is to have.
    """

    job: Job

    def __init__(self, actor: Any, host: str, workers: int) -> None:
        self._actor, self.host, self.workers = actor, host, workers
        self._progress = Progress(PHASES[0])

    async def begin(self, job: Job) -> None:
        """Hand the job over; connections are opened at once."""
        self.job = job
        await self.call("begin", job, self.workers)

    async def check_ready(self) -> None:
        """See `Part`."""
        if self.job.records is not None:
            private_files.create(
                "--records", self.job.records
            ).close()  # else those of another run would be taken for its own
        await super().check_ready()

    async def carry_out(self, start_ns: int) -> Measured:
        """See `Part`; it starts when it hears of it, after the time that is left here."""
        try:
            found: Measured = await self.call("carry_out", start_ns - now_ns())
        except WorkerDied as died:
            raise WorkerDied(died.who, f"{died.how}; what it had measured is lost") from died
        with contextlib.suppress(WorkerDied):  # its records will be missed below
            await self.look()
        shards = tuple(replace(shard, host=self.host) for shard in found.shards)
        found = replace(found, snapshot=found.snapshot.on_clock(start_ns), shards=shards)
        if self.job.records is None:
            return found
        try:
            await self._fetch(self.job.records)
        except (OSError, WorkerDied) as error:
            return found.with_records_error(str(error))
        return found

    async def step(self, name: str, *arguments: Any) -> Any:
        """See `Proxy`."""
        return await self.call("step", name, *arguments)

    def progress(self) -> Progress:
        """As it has told it last."""
        return self._progress

    def stop(self, reason: str) -> None:
        """See `Part`."""
        self._actor.stop.remote(reason)

    def abort(self, reason: str) -> None:
        """See `Part`."""
        self._actor.abort.remote(reason)

    async def look(self) -> None:
        """Ask how far it is."""
        self._progress = await self.call("progress")

    async def call(self, name: str, *arguments: Any) -> Any:
        """Have it do something.

        Raises:
            LoadgenError: What it answers, if that is one.
            WorkerDied: The machine, or the process there, has gone.
        """
        try:
            found = await getattr(self._actor, name).remote(*arguments)
        except _ray("ray.exceptions").RayError as error:
            stripe = self.job.stripe
            raise WorkerDied(f"part {stripe.index + 1} of {stripe.count}", self._how(error)) from error
        if isinstance(found, LoadgenError):
            raise found
        return found

    def _how(self, error: Exception) -> str:
        """How it was lost: by a fault of ours there, or with the machine, or what lay on it."""
        if isinstance(error, _ray("ray.exceptions").RayTaskError):
            return f"failed on node {self.host}: {str(error).rstrip().splitlines()[-1]}"
        return f"was lost with node {self.host}"

    async def _fetch(self, path: "Path") -> None:
        """Write its records here."""
        offset = 0
        with private_files.create("--records", path) as file:
            while data := await self.call("read", offset, CHUNK_BYTES):
                file.write(data)
                offset += len(data)


class Nodes(Group[Remote]):
    """Machines of a cluster that measure."""

    async def check_ready(self) -> None:
        """Hand the requests over, and see that the servers answer."""
        self._handed: dict[str, int] = {}  # bytes of each file
        self._receiving = list(self._parts)  # those that have taken all of it
        await self._hand_over()
        await super().check_ready()

    async def measure(self, job: Job, prepared: Awaitable[None], on_progress: Callable[[Progress], None]) -> Measured:
        """Share the job among them, and take what comes back.

        Raises:
            WorkerDied: One was lost before the clock started.
        """
        await gather_or_cancel(node.begin(own) for node, own in self.shared(job))
        async with background_tasks(*(_follow(node) for node in self._parts)):
            return await conduct(self, prepared, on_progress)

    async def carry_out(self, start_ns: int) -> Measured:
        """See `Part`; requests that are made meanwhile are handed over too."""
        async with background_tasks(
            *([self._keep_handing()] if request_store.about(self.job.folder).get("further") else [])
        ):
            return await super().carry_out(start_ns)

    async def _keep_handing(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            with contextlib.suppress(WorkerDied):  # whoever waits for its next step is told
                await self._hand_over()

    async def _hand_over(self) -> None:
        """Send what has been added to the files of the requests.

        Raises:
            WorkerDied: One has not taken it, and is sent nothing more; what is left is sent to the others next time.
        """
        ray, folder = _ray(), self.job.folder
        names = request_store.files(folder)
        # Sizes are taken from the index on, so that what it tells of is there.
        ends = {name: (folder / name).stat().st_size for name in reversed(names)}
        for name in names:
            with open(folder / name, "rb") as file:  # noqa: ASYNC230 - of a size that is read in milliseconds
                file.seek(self._handed.get(name, 0))
                while data := file.read(min(CHUNK_BYTES, ends[name] - file.tell())):
                    self._handed[name] = file.tell()  # whatever comes of it: nobody is to get it twice
                    await self._write(name, ray.put(data))

    async def _write(self, name: str, chunk: Any) -> None:
        """Send a piece of a file, which is put once for all of them."""
        nodes = self._receiving
        told = await asyncio.gather(*(node.call("write", name, chunk) for node in nodes), return_exceptions=True)
        self._receiving = [node for node, error in zip(nodes, told, strict=True) if error is None]
        for error in filter(None, told):
            raise error


@contextlib.asynccontextmanager
async def open_nodes(settings: RunSettings) -> AsyncIterator[Nodes]:
    """Machines of a cluster, held while the context lasts.

    Args:
        settings: Of the run, checked: which cluster, how many machines of it, how many workers on each.

    Raises:
        BadInput: It is not to be had, or not with these settings.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_cluster(str(settings.ray)))
        found = _chosen(settings)
        hosts = [node["NodeManagerAddress"] for node in found]
        told = await asyncio.gather(*(_facts(node) for node in found))
        _check_versions(dict(zip(hosts, (facts["loadgen"] for facts in told), strict=True)))
        workers = _workers(settings, [facts["cores"] for facts in told])
        nodes = []
        for node, host in zip(found, hosts, strict=True):
            actor = _placed(Node, node).remote()
            stack.push_async_callback(_put_away, actor)
            nodes.append(Remote(actor, host, workers))
        group = Nodes(nodes, workers)
        stack.callback(group.clear)
        yield group


def _ray(module: str = "ray") -> Any:
    """Ray's module, or another of it; it is slow to import, and may not be installed."""
    return import_module(module)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Belong to a cluster while the context lasts; where this process does already, to that one.

    Raises:
        BadInput: It cannot.
    """
    require(FLAG, "a cluster", "ray")
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    _check_listens(address)
    try:
        ray.init(address=address, namespace="loadgen", log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        problem, remedy = " ".join(str(error).split()), "run on a machine of a cluster that `ray start` has made"
        raise BadInput(FLAG, f"{address}: {problem}", remedy) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_listens(address: str) -> None:
    """Refuse at once what Ray would look for during a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise BadInput(FLAG, f"{address!r} is no address", "write HOST:PORT of the cluster's head, or auto")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        problem = f"no cluster at {address} ({getattr(error, 'strerror', None) or error})"
        raise BadInput(FLAG, problem, "give the address that `ray start --head` tells") from error


def _chosen(settings: RunSettings) -> list[dict[str, Any]]:
    """The machines that are to measure: the first by their addresses.

    Raises:
        BadInput: There are too few.
    """
    alive = sorted((node for node in _ray().nodes() if node["Alive"]), key=_place)
    wanted = settings.ray_nodes or len(alive)
    if wanted > len(alive):
        there = ", ".join(node["NodeManagerAddress"] for node in alive)
        problem = f"{wanted} are asked for, and the cluster has {len(alive)} ({there})"
        raise BadInput("--ray-nodes", problem, "add machines with `ray start --address`, or ask for fewer")
    return alive[:wanted]


def _place(node: dict[str, Any]) -> tuple[bool, int, int, str]:
    """Where a machine stands among others: 10.0.0.9 before 10.0.0.10; one that is told by a name after all these."""
    name = str(node["NodeManagerAddress"])
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(name)
        return False, address.version, int(address), name
    return True, 0, 0, name


def _placed(what: Any, node: dict[str, Any]) -> Any:
    """A class or function as it runs on this one machine, whatever else that is given to do."""
    where = _ray("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return _ray().remote(num_cpus=0)(what).options(scheduling_strategy=where)


async def _facts(node: dict[str, Any]) -> dict[str, Any]:
    """What a machine says of itself.

    Raises:
        BadInput: It does not answer.
    """
    _ray("ray.cloudpickle").register_pickle_by_value(node_facts)  # it may have no loadgen of which it could import this
    try:
        async with asyncio.timeout(PATIENCE_S):
            found: dict[str, Any] = await _placed(node_facts.facts, node).remote()
            return found
    except (_ray("ray.exceptions").RayError, TimeoutError) as error:
        problem = f"node {node['NodeManagerAddress']} does not answer ({type(error).__name__})"
        raise BadInput(FLAG, problem, "look at it with `ray status`, or leave it out with --ray-nodes") from error


def _check_versions(versions: dict[str, str | None]) -> None:
    """Refuse machines that have another loadgen than this one, or none.

    Raises:
        BadInput: Naming the first.
    """
    own = importlib.metadata.version("loadgen")
    for host, version in versions.items():
        if version != own:
            problem = f"node {host} has {'no loadgen' if version is None else f'loadgen {version}'}, and here is {own}"
            raise BadInput(FLAG, problem, f"install loadgen {own} into the environment that runs Ray there")


def _workers(settings: RunSettings, cores: list[int]) -> int:
    """How many workers each machine is to have: as many as the smallest of them may, where they are to decide.

    Raises:
        BadInput: All together they are more than may be in flight at once.
    """
    cap, nodes = settings.max_concurrency, len(cores)
    most = [limit // nodes for limit in (cap, settings.num_prompts) if limit is not None]
    workers = auto(min(cores), *most) if settings.workers == "auto" else int(settings.workers)
    check_share(cap, workers, nodes)
    return workers


async def _follow(node: Remote) -> None:
    while True:
        with contextlib.suppress(WorkerDied):  # whoever waits for its next step is told
            await node.look()
        await asyncio.sleep(PROGRESS_S)


async def _put_away(actor: Any) -> None:
    with contextlib.suppress(_ray("ray.exceptions").RayError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await actor.end.remote()
    _ray().kill(actor)

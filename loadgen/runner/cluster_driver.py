"""Machines of a Ray cluster that share the requests of a run, each with workers of its own: the
side that coordinates.

Ray carries the job, the files of the requests and what was measured; a run is shared, started and
merged as among the workers of one machine.
"""

import asyncio
import contextlib
import importlib.metadata
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loadgen.config.settings import RunSettings
from loadgen.config.validate import check_share
from loadgen.errors import BadInput, LoadgenError, WorkerDied, setting
from loadgen.metrics.records.shards import shard_path
from loadgen.metrics.run_data import Measurement
from loadgen.runner import cluster_node
from loadgen.runner.job import PROGRESS_S, Job
from loadgen.runner.participant import Command, Group, Proxy, Step
from loadgen.runner.workers import auto_workers
from loadgen.util import files
from loadgen.util.clock import now_ns
from loadgen.util.packages import require
from loadgen.util.tasks import background_tasks
from loadgen.workload import request_store

CHUNK_BYTES = 32 << 20
PATIENCE_S = 30.0  # for a machine to describe itself, or to stop its workers
CONNECT_S = 5.0
FLAG = setting.ray


class NodeProxy(Proxy):
    """The workers of another machine, whose clock and disk are its own.

    Args:
        handle: Ray's handle of a `Node`.
        host: The address of its machine.
        workers: Number of its workers.

    Attributes:
        host: The address of its machine.
    """

    def __init__(self, handle: Any, host: str, workers: int) -> None:
        super().__init__(workers)
        self.host = host
        self._handle = handle
        self._following: asyncio.Task[None] | None = None

    async def begin(self, job: Job) -> None:
        """Hand the job and its schedule over, and ask for progress from now on."""
        self.job = job
        schedule = (job.folder / request_store.SCHEDULE).read_bytes()
        await self._ask("begin", job, self.workers, schedule)
        self._following = asyncio.create_task(self._follow())

    async def take(self, step: Step) -> None:
        """Have it take the step; before the first one, empty the files for its journals."""
        if step == "check_ready":  # else those of another run would be taken for its own
            for path in self._journals().values():
                files.create_private(setting.records, path).close()
        await super().take(step)

    async def carry_out(self, start_ns: int) -> Measurement:
        """Have it send on its own clock, which starts after the time that is left here; fetch
        its journals.
        """
        try:
            measurement: Measurement = await self._ask("carry_out", start_ns - now_ns())
        except WorkerDied as died:
            return await self.recover(
                start_ns, WorkerDied(died.who, f"{died.how}; what it had measured is lost")
            )
        with contextlib.suppress(WorkerDied):  # its records will be missed below
            await self._update_progress()
        workers = tuple(replace(worker, host=self.host) for worker in measurement.trailer.workers)
        measurement = replace(
            measurement,
            snapshot=measurement.snapshot.on_clock(start_ns),
            trailer=replace(measurement.trailer, workers=workers),
        )
        try:
            for index, path in self._journals().items():
                with files.create_private(setting.records, path) as file:
                    while data := await self._ask("read", index, file.tell(), CHUNK_BYTES):
                        file.write(data)
        except (OSError, WorkerDied) as error:
            return measurement.with_records_error(str(error))
        return measurement

    def _journals(self) -> dict[int, Path]:
        """Return where the journals of its workers go on this machine, by the indices of their
        partitions.
        """
        if self.job.records is None:
            return {}
        parts = [self.job.partition.split(number, self.workers) for number in range(self.workers)]
        return {part.index: shard_path(self.job.records, part.index) for part in parts}

    async def call(self, step: str, *arguments: Any) -> Any:
        """Have a step taken there."""
        return await self._ask("call", step, *arguments)

    def send(self, command: Command, argument: Any) -> None:
        """Send a command, and do not wait for it."""
        self._handle.send.remote(command, argument)

    async def write(self, name: str, chunk: Any, *, begins: bool) -> None:
        """Write a piece of a file of the requests there; the first one replaces the file."""
        await self._ask("write", name, chunk, begins)

    async def close(self) -> None:
        """Stop the workers there."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        with contextlib.suppress(_ray("ray.exceptions").RayError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._handle.close.remote()
        _ray().kill(self._handle)

    async def _ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the `Node`.

        Raises:
            LoadgenError: The method returned it.
            WorkerDied: The machine, or the process there, is gone.
        """
        try:
            answer = await getattr(self._handle, method).remote(*arguments)
        except _ray("ray.exceptions").RayError as error:
            part = self.job.partition
            if isinstance(error, _ray("ray.exceptions").RayTaskError):  # an error of ours there
                how = f"failed on node {self.host}: {str(error).rstrip().splitlines()[-1]}"
            else:
                how = f"was lost with node {self.host}"
            raise WorkerDied(f"part {part.index + 1} of {part.count}", how) from error
        if isinstance(answer, LoadgenError):
            raise answer
        return answer

    async def _follow(self) -> None:
        """Keep the progress up to date until cancelled."""
        while True:
            with contextlib.suppress(WorkerDied):  # the next step raises it
                await self._update_progress()
            await asyncio.sleep(PROGRESS_S)

    async def _update_progress(self) -> None:
        self._progress = await self._ask("progress")


class NodeGroup(Group):
    """Machines of a cluster, which are sent the files of the requests.

    Args:
        nodes: The machines that share the job.
        workers: Number of workers of each.
    """

    def __init__(self, nodes: Sequence[NodeProxy], workers: int) -> None:
        super().__init__(nodes, workers)
        self._sent: dict[str, int] = {}  # bytes of each file
        self._receiving = list(nodes)  # those that have taken all of it

    async def take(self, step: Step) -> None:
        """Have all take the step; before the first one, send the requests."""
        if step == "check_ready":
            await self._send_files()
        await super().take(step)

    async def carry_out(self, start_ns: int) -> Measurement:
        """Have all send on one clock; send requests that are prepared meanwhile, too."""
        grows = request_store.read_about(self.job.folder).get("further")
        async with background_tasks(*([self._keep_sending_files()] if grows else [])):
            return await super().carry_out(start_ns)

    async def _keep_sending_files(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            with contextlib.suppress(WorkerDied):  # the step that runs raises it
                await self._send_files()

    async def _send_files(self) -> None:
        """Send what was added to the files of the requests.

        Raises:
            WorkerDied: A machine has not taken it, and is sent nothing more; the rest is sent to
                the others next time.
        """
        ray = _ray()
        folder = self.job.folder
        names = request_store.file_names(folder)
        # Sizes are taken from the index on, so that what it refers to is there.
        ends = {name: (folder / name).stat().st_size for name in reversed(names)}
        for name in names:
            with open(folder / name, "rb") as file:  # noqa: ASYNC230 - of a size that is read in milliseconds
                begin = file.seek(self._sent.get(name, 0))
                while data := file.read(min(CHUNK_BYTES, ends[name] - file.tell())):
                    # Before it is sent: a chunk must not be sent twice.
                    self._sent[name] = file.tell()
                    chunk = ray.put(data)  # once for all of them
                    nodes = self._receiving
                    errors = await asyncio.gather(
                        *(node.write(name, chunk, begins=begin == 0) for node in nodes),
                        return_exceptions=True,
                    )
                    self._receiving = [
                        node for node, error in zip(nodes, errors, strict=True) if error is None
                    ]
                    for error in filter(None, errors):
                        raise error
                    begin = file.tell()


@contextlib.asynccontextmanager
async def open_nodes(settings: RunSettings) -> AsyncIterator[Group]:
    """Open the machines of a cluster that measure, as long as the context.

    Args:
        settings: The settings of the run, checked: which cluster, how many machines of it, how many
            workers on each.

    Yields:
        The machines, without a job.

    Raises:
        BadInput: The cluster cannot be used, or not with these settings.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_cluster(str(settings.ray)))
        nodes = _chosen(settings)
        hosts = [node["NodeManagerAddress"] for node in nodes]
        facts = await asyncio.gather(*map(_facts, nodes))
        _check_versions(dict(zip(hosts, (fact["loadgen"] for fact in facts), strict=True)))
        workers = _workers(settings, [fact["cores"] for fact in facts])
        proxies = []
        for node, host in zip(nodes, hosts, strict=True):
            proxy = NodeProxy(_placed(cluster_node.Node, node).remote(), host, workers)
            stack.push_async_callback(proxy.close)
            proxies.append(proxy)
        group = NodeGroup(proxies, workers)
        stack.callback(group.clear)
        yield group


def _ray(module: str = "ray") -> Any:
    """Import a module of Ray, which is slow to import and may not be installed."""
    return import_module(module)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Join a cluster as long as the context; where this process is in one already, use that one.

    Raises:
        BadInput: It cannot be joined.
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
        problem = " ".join(str(error).split())
        remedy = "run on a machine of a cluster that `ray start` has made"
        raise BadInput(FLAG, f"{address}: {problem}", remedy) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_listens(address: str) -> None:
    """Refuse an address at which no cluster listens; Ray would look for one during a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise BadInput(
            FLAG, f"{address!r} is not an address", "write HOST:PORT of the cluster's head, or auto"
        )
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        problem = f"no cluster at {address} ({getattr(error, 'strerror', None) or error})"
        raise BadInput(FLAG, problem, "give the address that `ray start --head` prints") from error


def _chosen(settings: RunSettings) -> list[dict[str, Any]]:
    """Choose the machines that measure: the first by their addresses.

    Raises:
        BadInput: There are too few.
    """
    alive = sorted((node for node in _ray().nodes() if node["Alive"]), key=_place)
    count = settings.ray_nodes or len(alive)
    if count > len(alive):
        addresses = ", ".join(node["NodeManagerAddress"] for node in alive)
        problem = f"{count} are asked for, and the cluster has {len(alive)} ({addresses})"
        raise BadInput(
            setting.ray_nodes, problem, "add machines with `ray start --address`, or ask for fewer"
        )
    return alive[:count]


def _place(node: dict[str, Any]) -> tuple[bool, int, int, str]:
    """Return the sort key of a machine: 10.0.0.9 comes before 10.0.0.10, and names after
    addresses.
    """
    name = str(node["NodeManagerAddress"])
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(name)
        return False, address.version, int(address), name
    return True, 0, 0, name


def _placed(remote: Any, node: dict[str, Any]) -> Any:
    """Bind a class or function to one machine, also if that is busy."""
    strategy = _ray("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(
        node["NodeID"], soft=False
    )
    return _ray().remote(num_cpus=0)(remote).options(scheduling_strategy=strategy)


async def _facts(node: dict[str, Any]) -> dict[str, Any]:
    """Ask a machine for the facts of `cluster_node.facts_by_value`.

    Raises:
        BadInput: It does not answer.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            facts: dict[str, Any] = await _placed(cluster_node.facts_by_value(), node).remote()
            return facts
    except (_ray("ray.exceptions").RayError, TimeoutError) as error:
        problem = f"node {node['NodeManagerAddress']} does not answer ({type(error).__name__})"
        raise BadInput(
            FLAG, problem, f"look at it with `ray status`, or leave it out with {setting.ray_nodes}"
        ) from error


def _check_versions(versions: dict[str, str | None]) -> None:
    """Refuse machines that have another loadgen than this one, or none.

    Raises:
        BadInput: Naming the first.
    """
    expected = importlib.metadata.version("loadgen")
    for host, version in versions.items():
        if version != expected:
            name = "no loadgen" if version is None else f"loadgen {version}"
            problem = f"node {host} has {name}, and here is {expected}"
            raise BadInput(
                FLAG,
                problem,
                f"install loadgen {expected} into the environment that runs Ray there",
            )


def _workers(settings: RunSettings, cores: list[int]) -> int:
    """Return how many workers each machine has; for `auto` as many as suit the machine with the
    fewest cores.

    Raises:
        BadInput: All together they are more than may be in flight at once.
    """
    nodes = len(cores)
    totals = (settings.max_concurrency, settings.requests)
    shares = [total // nodes for total in totals if total is not None]
    workers = (
        auto_workers(min(cores), *shares) if settings.workers == "auto" else int(settings.workers)
    )
    check_share(settings.max_concurrency, workers, nodes)
    return workers

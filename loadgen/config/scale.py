"""The settings that say how many processes and machines share the requests of a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.config.option import SCALE, option, require
from loadgen.errors import BadInput

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings

MOST_WORKERS = 256


@dataclass(frozen=True, kw_only=True)
class ScaleSettings:
    """Who measures; by default one process, or in the library the running loop."""

    workers: int | str = option(
        1,
        SCALE,
        "processes that share the requests, on each machine; auto goes by its cores",
        metavar="N|auto",
    )
    ray: str | None = option(
        None, SCALE, "measure from a Ray cluster: HOST:PORT of its head, or auto", metavar="auto|HOST:PORT"
    )
    ray_nodes: int | None = option(None, SCALE, "so many of its machines (all)", metavar="N")


def check(settings: "RunSettings") -> None:
    """Refuse what cannot be shared.

    Raises:
        BadInput: The first value that cannot be used.
    """
    if settings.workers != "auto":
        require("workers", settings.workers, lambda v: 0 < v <= MOST_WORKERS, f"auto, or 1 to {MOST_WORKERS}")
    require("ray_nodes", settings.ray_nodes, lambda v: v > 0, "a number above 0")
    if settings.workers != "auto":
        check_share(settings.max_concurrency, int(settings.workers), settings.ray_nodes or 1)
    if settings.capture is not None and (settings.ray is not None or settings.workers not in (1, "auto")):
        problem = f"given beside {'--workers' if settings.ray is None else '--ray'}: one process keeps the responses"
        raise BadInput("--capture", problem, "leave one of the two out")
    if settings.ray is None:
        if settings.ray_nodes is not None:
            raise BadInput("--ray-nodes", "given without a cluster", "name one with --ray")
        return
    if settings.ray.startswith("ray://"):
        remedy = "run loadgen on a machine of the cluster, and give HOST:PORT of its head, or auto"
        raise BadInput("--ray", "ray:// goes through a proxy of Ray's", remedy)
    if not settings.urls and settings.host is None:
        problem = "names no server that the machines of the cluster can reach"
        raise BadInput("--ray", problem, "start one where they can, and name it with --base-url")


def check_share(cap: int | None, workers: int, machines: int = 1) -> None:
    """Refuse a cap on requests in flight of which some process would have nothing.

    Args:
        cap: --max-concurrency, if any.
        workers: Processes on each machine.
        machines: That share the run.

    Raises:
        BadInput: There are more processes than requests.
    """
    count = workers * machines
    if cap is not None and count > cap:
        who = f"{workers} processes" if machines == 1 else f"{machines} machines of {workers} processes"
        problem = f"{who} cannot share {cap} requests in flight"
        raise BadInput("--workers", problem, f"give --max-concurrency {count} or more, or use fewer")

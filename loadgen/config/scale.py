"""Settings of the scale: the processes and machines that share the requests of a run."""

from dataclasses import dataclass

from loadgen.config.option import SCALE, option


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # a part of RunSettings
class ScaleSettings:
    """Fields of the scale. By default one process measures, or in the library the running event loop."""

    workers: int | str = option(
        1,
        SCALE,
        "processes on each machine that share the requests; auto depends on its cores",
        metavar="N|auto",
    )
    ray: str | None = option(
        None, SCALE, "measure from a Ray cluster: HOST:PORT of its head, or auto", metavar="auto|HOST:PORT"
    )
    ray_nodes: int | None = option(None, SCALE, "number of machines of the cluster to use (all)", metavar="N")

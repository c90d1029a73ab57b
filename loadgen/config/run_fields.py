"""`RunFields`: all fields of a run."""

from loadgen.config.data import DataSettings
from loadgen.config.load import CacheSettings, LoadSettings
from loadgen.config.option import (
    EVERYDAY,
    FROM_1,
    SCALE,
    Form,
    Range,
    options_about,
    settings_class,
)
from loadgen.config.output import OutputSettings
from loadgen.config.target import ServerCallSettings, TargetSettings

WORKERS = Range("auto, or 1 to 256", 1, 256)
scale_option = options_about(SCALE)


@settings_class
class ScaleSettings:
    """Fields of the scale.

    By default one process measures, or in the library the running event loop.
    """

    workers: int | str = scale_option(
        1,
        "processes on each machine that share the requests; auto depends on its cores",
        metavar="N|auto",
        tier=EVERYDAY,
        range=WORKERS,
    )
    ray: str | None = scale_option(
        None,
        "measure from a Ray cluster: HOST:PORT of its head, or auto",
        metavar="auto|HOST:PORT",
        form=Form(
            "(?!ray://).*",
            "ray:// addresses a proxy of Ray, which loadgen cannot use",
            "run loadgen on a machine of the cluster, and give HOST:PORT of its head, or auto",
        ),
        excludes=("capture",),
        why="measures in several processes",
    )
    ray_nodes: int | None = scale_option(
        None,
        "number of machines of the cluster to use (all)",
        metavar="N",
        range=FROM_1,
        needs="ray",
    )


@settings_class
class RunFields(
    ServerCallSettings,
    CacheSettings,
    LoadSettings,
    TargetSettings,
    DataSettings,
    OutputSettings,
    ScaleSettings,
):
    """All fields of a run, in the order of the topics scale, output, data, target, load, cache,
    server calls.
    """

    @property
    def adapts(self) -> bool:
        """Whether requests may be changed to what the server takes."""
        return not self.strict if self.adapt is None else self.adapt

    @property
    def counted_by_data(self) -> bool:
        """Whether the data set alone says how many requests there are."""
        return self.timed_by_data and self.num_prompts is None and self.duration is None

    @property
    def requests(self) -> int | None:
        """The number of requests that --num-prompts means; None if it is not given."""
        return None if self.num_prompts is None else self.requests_of(self.num_prompts)

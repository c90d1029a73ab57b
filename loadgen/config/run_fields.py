"""`RunFields`: all fields of a run."""

from dataclasses import dataclass

from loadgen.config.cache import CacheSettings
from loadgen.config.data import DataSettings
from loadgen.config.load import LoadSettings
from loadgen.config.output import OutputSettings
from loadgen.config.scale import ScaleSettings
from loadgen.config.server_calls import ServerCallSettings
from loadgen.config.target import TargetSettings


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a part of RunSettings
class RunFields(
    ServerCallSettings, CacheSettings, LoadSettings, TargetSettings, DataSettings, OutputSettings, ScaleSettings
):
    """All fields of a run, in the order of the topics scale, output, data, target, load, cache, server calls."""

    @property
    def counted_by_data(self) -> bool:
        """Whether the data set alone says how many requests there are."""
        return self.timed_by_data and self.num_prompts is None and self.duration is None

    @property
    def requests(self) -> int | None:
        """The number of requests that --num-prompts means; None if it is not given."""
        return None if self.num_prompts is None else self.requests_of(self.num_prompts)

    def __post_init__(self) -> None:
        """Do nothing; `RunSettings` converts and checks its values here."""

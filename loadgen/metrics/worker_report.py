"""The report of one worker of a run: what measuring cost it, and whether it came to its end."""

from dataclasses import dataclass
from typing import Any, Self

from loadgen.metrics.client_cpu_usage import ClientUsage


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """What one worker, a process or a loop, reports of its own partition of the run."""

    number: int = 0  # the index of that partition, from 0
    client: ClientUsage = ClientUsage()
    # hash of the whole schedule that the worker had; None where it died before it could say
    schedule_sha256: str | None = None
    host: str | None = None  # the address of its machine; None: the one that coordinated the run
    lost: str | None = None  # how the worker died, as in "was killed by signal 9"; None where it came to its end
    cache_warmed: int = 0  # requests that succeeded before the clock started, to warm the server's prefix cache up

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the report from its JSON form."""
        return cls(**data | {"client": ClientUsage.from_dict(data["client"])})

"""The report of one worker of a run: what measuring cost it, and whether it came to its end."""

from dataclasses import dataclass
from typing import Any, Self

from loadgen.metrics.client_cpu_usage import ClientUsage


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """What one worker, a process or a loop, reports of its own partition of the run.

    Attributes:
        number: The index of that partition, from 0.
        client: Resources that measuring took, and disturbances.
        schedule_sha256: Hash of the whole schedule that the worker had; None where it died before it could say.
        host: The address of its machine; None: the one that coordinated the run.
        lost: How the worker died, as in "was killed by signal 9"; None where it came to its end.
        cache_warmed: Requests that succeeded before the clock started, to warm the server's prefix cache up.
    """

    number: int = 0
    client: ClientUsage = ClientUsage()
    schedule_sha256: str | None = None
    host: str | None = None
    lost: str | None = None
    cache_warmed: int = 0

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the report from its JSON form.

        Raises:
            KeyError, TypeError: `data` is no report.
        """
        return cls(**data | {"client": ClientUsage.from_dict(data["client"])})

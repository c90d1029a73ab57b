"""Shard: what became of one worker of a run."""

from dataclasses import dataclass
from typing import Any, Self

from loadgen.metrics.client_usage import Client


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One worker: the process, or the loop, that carried out one stripe.

    Attributes:
        number: Of that stripe, counted from 0.
        client: What measuring cost it and met.
        schedule_sha256: Of the whole schedule of which it took its stripe; None where it did not live to tell.
        host: The address of its machine; None: the one on which the run was conducted.
        lost: How it was lost, as in "was killed by signal 9"; None where it came to its end.
    """

    number: int = 0
    client: Client = Client()
    schedule_sha256: str | None = None
    host: str | None = None
    lost: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return vars(self) | {"client": self.client.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The one of which `to_dict` made `data`.

        Raises:
            KeyError, TypeError: It made something else.
        """
        return cls(**data | {"client": Client.from_dict(data["client"])})

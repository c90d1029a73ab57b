"""Strategy: the load of a run, in guidellm's terms."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Strategy:
    """The load of a run.

    Attributes:
        type_: The profile: constant, concurrent, ...
        rate: Requests per second or, for concurrent, requests in flight; None if the profile has no rate.
    """

    type_: str
    rate: float | None
    max_concurrency: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as guidellm writes it, where requests in flight are streams."""
        streams = self.type_ == "concurrent" and self.rate is not None
        return vars(self) | ({"streams": int(self.rate or 0)} if streams else {})

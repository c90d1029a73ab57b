"""The header of a run: who was asked what, when, and what it takes to repeat the run. First line of a records file."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from loadgen.config.serialize import restored
from loadgen.config.settings import RunSettings, public

DATE_FORMAT = "%Y%m%d-%H%M%S"


@dataclass(frozen=True)
class RunHeader:
    """Facts that are known before the clock starts, so that a report can be made from records that outlive their run.

    Attributes:
        settings: As resolved.
        model: The model's name in requests.
        date: Local start time, YYYYmmdd-HHMMSS.
        simulated: Whether the engine is loadgen's own simulator.
        provenance: What was run, by whom and on what; JSON.
    """

    settings: RunSettings
    model: str
    date: str
    simulated: bool
    provenance: dict[str, Any]

    def with_requests(self, prompts: dict[str, Any], schedule: dict[str, Any]) -> Self:
        """Return a copy that says where the prompts come from, and when they are due."""
        known = {"prompts": prompts, "schedule": schedule}
        return dataclasses.replace(self, provenance=self.provenance | known)

    def with_engine(self, **facts: Any) -> Self:
        """Return a copy with more facts about the engine."""
        engine = self.provenance["engine"] | facts
        return dataclasses.replace(self, provenance=self.provenance | {"engine": engine})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without secrets."""
        return vars(self) | {"settings": public(self.settings)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the header from its JSON form; secrets are not in it.

        Raises:
            KeyError, TypeError, ValueError: `data` is no header.
        """
        return cls(
            **{field.name: data[field.name] for field in dataclasses.fields(cls)}
            | {"settings": restored(data["settings"])}
        )

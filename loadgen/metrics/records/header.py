"""Heading: what stands above every number of a run: who was asked what, when, and what it takes to do it again."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from loadgen.config.serialize import restored
from loadgen.config.settings import RunSettings, public


@dataclass(frozen=True)
class Heading:
    """Known before the clock starts, so that records which outlive their run can be reported too.

    Attributes:
        settings: As resolved.
        model: The model's name in requests.
        date: Local start time, YYYYmmdd-HHMMSS.
        simulated: Whether the engine is loadgen's own simulator.
        provenance: What is needed to know what was run, by whom and on what; JSON.
    """

    settings: RunSettings
    model: str
    date: str
    simulated: bool
    provenance: dict[str, Any]

    def with_requests(self, prompts: dict[str, Any], schedule: dict[str, Any]) -> "Heading":
        """The same once it is known where the prompts come from, and when they are due."""
        known = {"prompts": prompts, "schedule": schedule}
        return dataclasses.replace(self, provenance=self.provenance | known)

    def with_engine(self, **facts: Any) -> "Heading":
        """The same with more facts about the engine."""
        engine = self.provenance["engine"] | facts
        return dataclasses.replace(self, provenance=self.provenance | {"engine": engine})

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without secrets."""
        return vars(self) | {"settings": public(self.settings)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The heading of which `to_dict` made `data`; secrets are not in it.

        Raises:
            KeyError, TypeError, ValueError: It made something else.
        """
        return cls(
            **{field.name: data[field.name] for field in dataclasses.fields(cls)}
            | {"settings": restored(data["settings"])}
        )

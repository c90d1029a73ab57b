"""The header of a run: who was asked what, when, and what it takes to repeat the run.

First line of a records file.
"""

from typing import Any, Self

from msgspec import Struct, structs

from loadgen.config.load import SEEDS
from loadgen.config.option import options
from loadgen.config.serialize import restored
from loadgen.config.settings import RunSettings, public, seed_of
from loadgen.util import machine
from loadgen.util.packages import package_version
from loadgen.util.trace_context import new_key
from loadgen.version import __version__

DATE_FORMAT = "%Y%m%d-%H%M%S"
PACKAGES = ("aiohttp", "uvloop", "orjson", "numpy", "tokenizers")  # that a run measures with


class RunHeader(Struct, frozen=True):
    """Facts that are known before the clock starts, so that a report can be made from records that
    outlive their run.

    Attributes:
        settings: The settings as resolved.
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

    @property
    def trace_key(self) -> str | None:
        """What the ids of its traces are made of; None: its requests have none."""
        key: str | None = self.provenance.get("trace_key")
        return key

    def with_requests(self, prompts: dict[str, Any], schedule: dict[str, Any]) -> Self:
        """Return a copy that says where the prompts come from, and when they are due.

        Args:
            prompts: The provenance of the prompts, as JSON.
            schedule: The provenance of the due times, as JSON.
        """
        origins = {"prompts": prompts, "schedule": schedule}
        return structs.replace(self, provenance=self.provenance | origins)

    def with_engine(self, **facts: Any) -> Self:
        """Return a copy with more facts about the engine."""
        engine = self.provenance["engine"] | facts
        return structs.replace(self, provenance=self.provenance | {"engine": engine})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without secrets."""
        return structs.asdict(self) | {"settings": public(self.settings)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the header from its JSON form; secrets are not in it.

        Raises:
            KeyError, TypeError, ValueError: `data` is no header.
        """
        return cls(
            **{field.name: data[field.name] for field in structs.fields(cls)}
            | {"settings": restored(data["settings"])}
        )


def provenance(settings: RunSettings, asked: RunSettings, engine: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that are needed to repeat a run, without those of prompts and schedule.

    Args:
        settings: The settings as resolved.
        asked: The settings as the user gave them.
        engine: What is known of the server.

    Returns:
        JSON.
    """
    declared = options(RunSettings).values()
    changed = {option.name for option in declared if getattr(asked, option.name) != option.default}
    trace_key = {"trace_key": new_key()} if settings.trace else {}
    return trace_key | {
        "settings": public(settings),
        "asked": {name: value for name, value in public(asked).items() if name in changed},
        "seeds": {what: seed_of(settings, what) for what in SEEDS},
        "versions": versions(),
        "machine": machine.describe(),
        "engine": engine,
    }


def versions() -> dict[str, str | None]:
    """Return the versions of loadgen and of the packages it measures with; None where one is not
    installed.
    """
    return {"loadgen": __version__, **{name: package_version(name) for name in PACKAGES}}

"""Provenance: the facts that are needed to repeat a run."""

from typing import Any

from loadgen.config.load import SEEDS
from loadgen.config.settings import RunSettings, public, seed_of
from loadgen.util import machine
from loadgen.util.packages import package_version
from loadgen.version import __version__

PACKAGES = ("aiohttp", "uvloop", "orjson", "numpy", "tokenizers")


def provenance(settings: RunSettings, asked: RunSettings, engine: dict[str, Any]) -> dict[str, Any]:
    """Collect the provenance of a run as JSON, without that of prompts and schedule.

    Args:
        settings: As resolved.
        asked: As the user gave them.
        engine: What is known of the server.
    """
    default = public(RunSettings())
    return {
        "settings": public(settings),
        "asked": {name: value for name, value in public(asked).items() if value != default[name]},
        "seeds": {what: seed_of(settings, what) for what in SEEDS},
        "versions": versions(),
        "machine": machine.describe(),
        "engine": engine,
    }


def versions() -> dict[str, str | None]:
    """Return the versions of loadgen and of the packages it measures with; None where one is not installed."""
    return {"loadgen": __version__, **{name: package_version(name) for name in PACKAGES}}

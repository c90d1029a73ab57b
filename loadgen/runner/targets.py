"""Targets: several servers that are measured as one: what they must have in common, and what is known of each."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from loadgen.config.settings import RunSettings
from loadgen.config.target import BALANCE
from loadgen.errors import BadInput
from loadgen.metrics.progress import Progress
from loadgen.runner import server
from loadgen.runner.server import Server
from loadgen.workload import target
from loadgen.workload.target import Target


def described(settings: RunSettings, model: str) -> tuple[Target, ...]:
    """Describe every server that the settings name, with `model` as its name in requests."""
    return tuple(Target.from_settings(alone, model) for alone in settings.apart())


async def running(settings: RunSettings, on_progress: Callable[[Progress], None] = lambda progress: None) -> Server:
    """Probe every server that the settings name: all of them must be there, and have the model.

    `on_progress` is called while one is waited for.

    Raises:
        Unreachable: Nothing answers at one of them, the first that is named.
        BadInput: One is named twice, does not have the model, or none is named and they differ in their first.
    """
    each = settings.apart()
    if len(each) == 1:
        return await server.running(settings, on_progress)
    _refuse_twins(each)
    probes = [server.running(alone, on_progress) for alone in each]
    probed = await asyncio.gather(*probes, return_exceptions=True)
    found = [one for one in probed if isinstance(one, Server)]
    for error in probed:
        if isinstance(error, BaseException):
            raise error
    names = _named([one.model for one in found], found)
    if len(names) > 1:
        problem = f"the servers have different ones first: {_listed(names)}"
        raise BadInput("--model", problem, "name one that all of them have")
    return _as_one(settings, found)


def _refuse_twins(each: Sequence[RunSettings]) -> None:
    seen = set()
    for alone in each:
        url = target.base_url(alone)
        place = target.origin(url), urlsplit(url).path
        if place in seen:
            raise BadInput("--base-url", f"{url} is given twice", "name each server once")
        seen.add(place)


def _as_one(settings: RunSettings, found: Sequence[Server]) -> Server:
    first = found[0]
    about: dict[str, Any] = {"targets": [one.about for one in found], "version": _version(found)}
    differ = list(_differences(found))
    if differ:
        about["differ"] = differ
        logging.warning("--base-url: the servers differ in %s", "; ".join(differ))
    continuous_usage = all(one.settings.continuous_usage for one in found)
    if settings.continuous_usage and not continuous_usage:  # one file of bodies serves all
        about["continuous_usage"] = "refused"
    resolved = first.settings.replace(
        base_url=settings.base_url,
        balance=settings.balance or BALANCE,
        continuous_usage=continuous_usage,
    )
    simulated = any(one.simulated for one in found)
    return dataclasses.replace(first, settings=resolved, about=about, simulated=simulated)


def _version(found: Sequence[Server]) -> str | None:
    """What they say of their version; None where one does not."""
    versions = [version for one in found if (version := one.about.get("version"))]
    return " and ".join(dict.fromkeys(versions)) if len(versions) == len(found) else None


def _differences(found: Sequence[Server]) -> list[str]:
    """In what they differ that nobody asked of them: a line for each."""
    versions = _named([one.about.get("version") or "unknown" for one in found], found)
    models = _named([", ".join(one.models) or "none" for one in found], found)
    told = {"their versions": versions, "the models that they list": models}
    return [f"{what}: {_listed(names)}" for what, names in told.items() if len(names) > 1]


def _named(values: Sequence[str], found: Sequence[Server]) -> dict[str, list[str]]:
    """Each value, and the URLs of the servers that have it."""
    urls: dict[str, list[str]] = {}
    for value, one in zip(values, found, strict=True):
        urls.setdefault(value, []).append(one.about["base_url"])
    return urls


def _listed(names: dict[str, list[str]]) -> str:
    return "; ".join(f"{value} at {', '.join(urls)}" for value, urls in names.items())

"""Changes of a study since its store was begun: what was measured stays, what was not may change,
and what is added to measured stages is measured after them.
"""

import json
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from loadgen.errors import Place
from loadgen.lab.study.plan.plan import CONFIRMATION
from loadgen.lab.study.spec.strict_model import AtFault

MAX_SHOWN = 80  # characters of a value in a message
_ADDED = re.compile(r" \(added(?: \d+)?\)$")


def merged_stages(
    before: Sequence[Mapping[str, Any]],
    now: Sequence[Mapping[str, Any]],
    measured: Set[str],
    folder: Path,
) -> list[dict[str, Any]]:
    """Return the stages that a store goes on with, in the order in which they run.

    Measured stages come first, with the arms that they had. Arms that were added to one form a
    stage of their own, `NAME (added)`: it has fresh starts of the arm it starts from, since arms
    are compared only with starts of the same time. All other stages follow as in the file.

    Args:
        before: The stages of the store, as JSON.
        now: Those of the file.
        measured: Names of the steps that have starts.
        folder: Folder of the store.

    Raises:
        AtFault: A measured stage has changed or is missing.
    """
    begun = [number for number, stage in enumerate(before) if stage["name"] in measured]
    kept = before[: len(before) if CONFIRMATION in measured else max(begun, default=-1) + 1]
    places = {stage["name"]: number for number, stage in enumerate(now)}
    stages: list[dict[str, Any]] = []
    parts: dict[str, list[str]] = {}  # stage of the file to its stages here
    moved: dict[str, str] = {}  # STAGE/ARM in the file to the same here
    for stage in kept:
        name = stage["name"]
        origin = name if name in places else _ADDED.sub("", name)
        if origin not in places:
            problem = f"{origin} is missing, but {folder} has results of it"
            raise AtFault(("stages",), problem, _remedy("put it back"))
        parts.setdefault(origin, []).append(name)
        known = stage.get("choice", {})
        moved |= {f"{origin}/{arm}": f"{name}/{arm}" for arm in known}
        in_file = _as_here(now[places[origin]], moved)
        as_here = {**in_file, "name": name, "expect": stage.get("expect")}
        if known and "choice" in in_file:
            as_here["choice"] = {arm: in_file["choice"].get(arm) for arm in known}
        check_same(stage, as_here, ("stages", places[origin]), folder)
        stages.append({**stage, "expect": in_file.get("expect")})
    for origin, names in parts.items():
        stage = _as_here(now[places[origin]], moved)
        arms = {
            arm: change
            for arm, change in stage.get("choice", {}).items()
            if f"{origin}/{arm}" not in moved
        }
        if arms:
            name = f"{origin} (added{f' {len(names)}' if len(names) > 1 else ''})"
            moved |= {f"{origin}/{arm}": f"{name}/{arm}" for arm in arms}
            stages.append({**stage, "name": name, "choice": arms, "expect": []})
    return [*stages, *(_as_here(stage, moved) for stage in now if stage["name"] not in parts)]


def _as_here(stage: Mapping[str, Any], moved: Mapping[str, str]) -> dict[str, Any]:
    return {**stage, "from": moved.get(stage["from"], stage["from"])}


def _remedy(first: str) -> str:
    return f"{first}, or begin another store with --store"  # the file has no such key


def check_same(before: Any, now: Any, at: Place, folder: Path) -> None:
    """Check that a part of a study is as it was.

    Args:
        before: The part in the store, as JSON.
        now: The part in the file.
        at: Its place in the file.
        folder: Folder of the store.

    Raises:
        AtFault: It has changed, at the place of the first change.
    """
    change = first_change(before, now, ())
    if change is None:
        return
    problem = f"is {shown(now, change)}, but was {shown(before, change)} when {folder} was begun"
    first = "undo the change"
    if at and change[0] in ("grid", "joint"):
        first += " and try the new values in a stage of their own"
    raise AtFault((*at, *change), problem, _remedy(first))


def first_change(before: Any, now: Any, at: Place) -> Place | None:
    """Return the place of the first difference; None if there is none that was measured."""
    if at in (("budget",), ("report",)):
        return None
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before = dict(enumerate(before))
        now = dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        places = (first_change(before.get(key), now.get(key), (*at, key)) for key in now | before)
        return next((place for place in places if place is not None), None)
    return None if before == now else at


def shown(value: Any, at: Place) -> str:
    """Return the value at a place as it would stand in the file, without what is not set, and
    shortened.
    """
    for key in at:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return "nothing"
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else _flow(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 4]} ..."


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        parts = {key: part for key, part in value.items() if part not in (None, [], {}, "")}
        return f"{{{', '.join(f'{key}: {_flow(part)}' for key, part in parts.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)

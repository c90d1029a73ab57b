"""Facts: what a study rests on, noted when it begins: none of it may be another when it goes on."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.tuning.execute import joint_search
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec import questions
from loadgen.tuning.spec.stages import Joint
from loadgen.tuning.spec.strict_model import At, AtFault
from loadgen.tuning.spec.study import Study
from loadgen.util import gpus, machine
from loadgen.version import __version__
from loadgen.workload.files import file_hash

LOCAL = ("/", "./", "../", "~")  # how a path begins that is no hub name
RUN, IMPORTED = "run", "import"  # where what a store has is from
GROUNDS = ("host", "builds", "data", "questions")


def gather(study: Study, planner: Planner, text: str) -> dict[str, Any]:
    """The facts as they are now, as JSON.

    Args:
        study: Which.
        planner: Knows its engines and workloads.
        text: Of its file.

    Raises:
        BadInput: The questions of its gate cannot be read.
    """
    return {
        "study": study.model_dump(mode="json", by_alias=True),
        "text": text,
        "source": RUN,
        "loadgen": __version__,
        "host": host(),
        "builds": {name: planner.served.installed(name) for name in study.engines},
        "data": _data(planner),
        "questions": _questions(study),
    }


def host() -> dict[str, Any]:
    """The machine, as far as results depend on it."""
    told = machine.describe()
    with gpus.Nvml.opened() as nvml:
        names = [gpu["name"] for gpu in nvml.read()] if nvml else []
    return {
        "name": platform.node(),
        "cpu": told["cpu"],
        "cores": told["usable_cores"],
        "gpus": names,
    }


def refuse_unready(study: Study, planner: Planner, facts: Mapping[str, Any]) -> None:
    """Look whether what a study names is here.

    Args:
        study: Which.
        planner: Knows its workloads.
        facts: As they are now.

    Raises:
        AtFault: A model, a data set, an engine's version or the hardware is not what it says.
        BadInput: What draws the arms of a stage is not installed.
    """
    for name, model in study.models.items():
        if model.startswith(LOCAL) and not Path(model).expanduser().exists():
            raise AtFault(("models", name), f"there is no {model}", "name a folder, a .gguf file or a hub name")
    for name, settings in planner.loads.items():
        path = settings.dataset_path
        if path and settings.dataset_name != "hf" and not Path(path).expanduser().exists():
            remedy = "name the file with dataset_path; `loadgen dataset fetch` gets it"
            raise AtFault(("workloads", name), f"there is no {path}", remedy)
    for stage in study.stages:
        if isinstance(stage, Joint):
            joint_search.refuse_missing(stage)
    for name, base in study.engines.items():
        build = facts["builds"][name]
        if base.version is not None and build is not None and base.version != build:
            problem = f"{base.version} is expected, and {build} is installed"
            raise AtFault(("engines", name, "version"), problem, "install the one, or expect the other")
    seen, claimed = len(facts["host"]["gpus"]), study.hardware.devices
    if seen and claimed > seen:
        problem = f"{claimed} are claimed, and this machine has {seen}"
        raise AtFault(("hardware", "devices"), problem, "run it where they are, or claim fewer")


def refuse_changes(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Look whether a study may go on in a store.

    Args:
        before: The facts in the store.
        now: The facts as they are.
        folder: The store.

    Raises:
        AtFault: The study is another; it names the first part that is.
        BadInput: The machine, an engine, a data set or the questions are others.
    """
    if before["source"] != RUN:
        raise BadInput(str(folder), "holds published results", "name another folder with --store")
    if (at := _first_change(before["study"], now["study"], ())) is not None:
        was, is_ = _at(before["study"], at), _at(now["study"], at)
        problem = f"is {is_}, and was {was} when {folder} was begun"
        raise AtFault(at, problem, "put it back, or begin another store with --store")
    for ground in GROUNDS:
        if (at := _first_change(before.get(ground), now[ground], (ground,))) is not None:
            was, is_ = _at(before, at), _at(now, at)
            problem = f"{'.'.join(map(str, at))} is {is_} now, and was {was} when it was begun"
            raise BadInput(str(folder), problem, "begin another store with --store: the two cannot be compared")


def _first_change(before: Any, now: Any, at: At) -> At | None:
    """Where two JSON values differ first; None where they do not."""
    if at in (("budget",), ("report",)) or (at[:1], at[2:]) == (("stages",), ("expect",)):  # nothing is measured by it
        return None
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *(key for key in before if key not in now)]:
            found = _first_change(before.get(key), now.get(key), (*at, key))
            if found is not None:
                return found
        return None
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        places = (
            _first_change(was, is_, (*at, number)) for number, (was, is_) in enumerate(zip(before, now, strict=True))
        )
        return next((place for place in places if place is not None), None)
    return None if before == now else at


def _at(value: Any, at: At) -> str:
    for key in at:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return "nothing"
    return "nothing" if value is None else repr(value)


def _data(planner: Planner) -> dict[str, Any]:
    """Of each workload that reads a file: the file, its size, and the hash of what is in it."""
    found = {}
    for name, settings in planner.loads.items():
        path = Path(settings.dataset_path).expanduser() if settings.dataset_path else None
        if path is not None and path.is_file():
            found[name] = {
                "path": settings.dataset_path,
                "bytes": path.stat().st_size,
                "sha256": file_hash.sha256(path),
            }
    return found


def _questions(study: Study) -> str | None:
    """The hash of those of a study's gate; None without one."""
    gate = study.objective.accuracy
    return None if gate is None else questions.sha256(questions.read(gate.file or questions.OWN))

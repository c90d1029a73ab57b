"""Facts of a study that its results depend on: recorded when it begins, and checked before it goes on."""

import logging
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.config.target import SIMULATOR
from loadgen.errors import BadInput
from loadgen.lab.study.execute import joint_search
from loadgen.lab.study.execute.hardware import Accelerators
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec import questions
from loadgen.lab.study.spec.stages import Joint
from loadgen.lab.study.spec.strict_model import At, AtFault
from loadgen.lab.study.spec.study import Study
from loadgen.util import machine
from loadgen.util.packages import find
from loadgen.version import __version__
from loadgen.workload.datasets import rules
from loadgen.workload.files import cache

logger = logging.getLogger("loadgen")

LOCAL = ("/", "./", "../", "~")  # beginnings of a path, in contrast to a hub name
RUN, IMPORTED = "run", "import"  # source of the trials in a store
GROUNDS = ("host", "builds", "data", "questions")
# Names for readers: of facts and their parts, and of the parts of each data set.
_NAMES: dict[At, str] = {
    ("loadgen",): "version of loadgen",
    ("host",): "machine",
    ("host", "name"): "machine",
    ("host", "cpu"): "processor",
    ("host", "cores"): "processor cores that loadgen may use",
    ("host", "gpus"): "accelerators",
    ("accelerators_from",): "accelerators named by",
    ("builds",): "versions of engines",
    ("data",): "data sets",
    ("questions",): "questions, SHA-256",
}
_OF_DATA = {"path": "file", "bytes": "bytes", "sha256": "SHA-256"}


def gather(study: Study, planner: Planner, text: str) -> dict[str, Any]:
    """Return the current facts as JSON; BadInput if the questions of its gate cannot be read."""
    accelerators, described, gate = Accelerators.found(), machine.describe(), study.objective.accuracy
    return {
        "study": study.as_json(),
        "text": text,
        "source": RUN,
        "loadgen": __version__,
        "host": {
            "name": platform.node(),
            "cpu": described["cpu"],
            "cores": described["usable_cores"],
            "gpus": list(accelerators.names),
        },
        "accelerators_from": accelerators.tool,
        "builds": {name: find("engines", name).version() for name in study.engines},
        "data": _data(planner),
        "questions": None if gate is None else questions.sha256(questions.read(gate.file or questions.OWN)),
    }


def check_available(study: Study, planner: Planner, facts: Mapping[str, Any]) -> None:
    """Check that everything a study names is available.

    Args:
        study: The study.
        planner: Its planner.
        facts: The current facts.

    Raises:
        AtFault: A model, a data set, an engine's version or the hardware is not what the study says.
        BadInput: The sampler of a joint stage, or the package of a data set's rule, is not installed.
    """
    for name, model in study.models.items():
        if model.startswith(LOCAL) and not Path(model).expanduser().exists():
            raise AtFault(("models", name), f"there is no {model}", "name a folder, a .gguf file or a hub name")
    for name, settings in planner.loads.items():
        rules.require_packages(settings.dataset_rule)
        path = settings.dataset_path
        if path and settings.dataset_name != "hf" and not Path(path).expanduser().exists():
            remedy = "name the file with dataset_path; `loadgen dataset fetch` gets it"
            raise AtFault(("workloads", name), f"there is no {path}", remedy)
    for stage in study.stages:
        if isinstance(stage, Joint):
            joint_search.require_sampler(stage)
    for name, base in study.engines.items():
        build = facts["builds"][name]
        if base.version is not None and build is not None and base.version != build:
            problem = f"{base.version} is expected, but {build} is installed"
            raise AtFault(("engines", name, "version"), problem, "install that version, or change the study")
    Accelerators(facts["accelerators_from"], tuple(facts["host"]["gpus"])).check(study.hardware)
    if facts["accelerators_from"] is None and study.hardware.devices and {*study.engines} - {SIMULATOR}:
        logger.warning(
            "hardware %s was not looked at: this machine has neither NVML with the package nvidia-ml-py nor npu-smi",
            study.hardware.name,
        )


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Check that a study may go on in a store.

    Args:
        before: The facts in the store.
        now: The current facts.
        folder: Folder of the store.

    Raises:
        AtFault: The study has changed, at the place of the first change.
        BadInput: The machine, an engine, a data set or the questions have changed.
    """
    if before["source"] != RUN:
        raise BadInput(str(folder), "holds published results", "name another folder with --store")
    if (at := _first_change(before["study"], now["study"], ())) is not None:
        was, is_ = _at(before["study"], at), _at(now["study"], at)
        problem = f"is {is_}, but was {was} when {folder} was begun"
        raise AtFault(at, problem, "undo the change, or begin another store with --store")
    for ground in GROUNDS:
        if (at := _first_change(before.get(ground), now[ground], (ground,))) is not None:
            was, is_ = _at(before, at), _at(now, at)
            problem = f"{fact_name(at)}: {is_} now, but {was} when the store was begun"
            raise BadInput(str(folder), problem, "begin another store with --store: results would not be comparable")


def fact_name(at: At) -> str:
    """Return the name of a fact, or of a part of it."""
    if at in _NAMES:
        return _NAMES[at]
    kind, of, *part = map(str, at)
    if kind == "builds":
        return f"version of {of}"
    assert kind == "data", at
    return ", ".join([f"data of {of}", *(_OF_DATA[name] for name in part)])


def _first_change(before: Any, now: Any, at: At) -> At | None:
    if at in (("budget",), ("report",)) or (at[:1], at[2:]) == (("stages",), ("expect",)):  # not measured
        return None
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        places = (_first_change(before.get(key), now.get(key), (*at, key)) for key in now | before)
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
    found = {}
    for name, settings in planner.loads.items():
        path = Path(settings.dataset_path).expanduser() if settings.dataset_path else None
        if path is not None and path.is_file():
            found[name] = {
                "path": settings.dataset_path,
                "bytes": path.stat().st_size,
                "sha256": cache.file_sha256(path),
            }
    return found

"""Facts of a study that its results depend on: recorded when it begins, and checked before it goes
on.

`Accelerators` are those of this machine, compared with the hardware that the study names.
"""

import logging
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from loadgen.config.target import SIMULATOR
from loadgen.errors import BadInput, Place, setting
from loadgen.lab.study.execute import walk
from loadgen.lab.study.execute.changes import check_same, first_change, shown
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec import questions
from loadgen.lab.study.spec.stages import Joint
from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.lab.study.spec.study import Hardware, Study
from loadgen.util import accelerators, machine
from loadgen.util.packages import find
from loadgen.version import __version__
from loadgen.workload.datasets import rules
from loadgen.workload.files import cache

logger = logging.getLogger("loadgen")

NVML = "NVML"
NPU_SMI = "npu-smi"
# Words of a name that do not tell the model: memory, its kind, the form of the board, numbers of
# devices.
NO_MODEL = re.compile(r"\d+x|x\d+|\d{1,2}|\d+(gb|gib|g)|hbm\d\w*|sxm\d*|pcie\d*")
MEMORY = re.compile(r"(\d+) ?gi?b\b")
FORM = re.compile(r"sxm|pcie|nvl")
LOCAL = ("/", "./", "../", "~")  # beginnings of a path, in contrast to a hub name
# Sources of the trials in a store.
RUN = "run"
IMPORTED = "import"
GROUNDS = ("host", "builds", "data", "questions")
# Names for readers: of facts and their parts, and of the parts of each data set.
_NAMES: dict[Place, str] = {
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
    """Return the current facts as JSON.

    Args:
        study: The study.
        planner: Its planner.
        text: Text of its file.

    Raises:
        BadInput: The questions of its gate cannot be read.
    """
    accelerators = Accelerators.found()
    described = machine.describe()
    gate = study.objective.accuracy
    data: dict[str, Any] = {}
    for name, settings in planner.loads.items():
        path = Path(settings.dataset_path).expanduser() if settings.dataset_path else None
        if path is not None and path.is_file():
            size = path.stat().st_size
            data[name] = {
                "path": settings.dataset_path,
                "bytes": size,
                "sha256": cache.file_sha256(path),
            }
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
        "data": data,
        "questions": None
        if gate is None
        else questions.sha256(questions.read(gate.file or questions.OWN)),
    }


def check_available(study: Study, planner: Planner, facts: Mapping[str, Any]) -> None:
    """Check that everything a study names is available.

    Args:
        study: The study.
        planner: Its planner.
        facts: The current facts.

    Raises:
        AtFault: A model, a data set, an engine's version or the hardware is not what the study
            says.
        BadInput: The sampler of a joint stage, or the package of a data set's rule, is not
            installed.
    """
    for name, model in study.models.items():
        if model.startswith(LOCAL) and not Path(model).expanduser().exists():
            raise AtFault(
                ("models", name),
                f"there is no {model}",
                "name a folder, a .gguf file or a hub name",
            )
    for name, settings in planner.loads.items():
        rules.require_packages(settings.dataset_rule)
        path = settings.dataset_path
        if path and settings.dataset_name != "hf" and not Path(path).expanduser().exists():
            remedy = "name the file with dataset_path; `loadgen dataset fetch` gets it"
            raise AtFault(("workloads", name), f"there is no {path}", remedy)
    for stage in study.stages:
        if isinstance(stage, Joint):
            walk.require_sampler(stage)
    for name, base in study.engines.items():
        build = facts["builds"][name]
        if base.version is not None and build is not None and base.version != build:
            problem = f"{base.version} is expected, but {build} is installed"
            raise AtFault(
                ("engines", name, "version"), problem, "install that version, or change the study"
            )
    Accelerators(facts["accelerators_from"], tuple(facts["host"]["gpus"])).check(study.hardware)
    if (
        facts["accelerators_from"] is None
        and study.hardware.devices
        and {*study.engines} - {SIMULATOR}
    ):
        logger.warning(
            "hardware %s was not looked at: this machine has neither NVML with the package "
            "nvidia-ml-py nor npu-smi",
            study.hardware.name,
        )


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Check that a study may go on in a store, but for its stages (`changes.merged_stages`).

    Args:
        before: The facts in the store.
        now: The current facts.
        folder: Folder of the store.

    Raises:
        AtFault: The study has changed, at the place of the first change.
        BadInput: The machine, an engine, a data set or the questions have changed.
    """
    if before["source"] != RUN:
        raise BadInput(
            str(folder), "holds published results", f"name another folder with {setting.store}"
        )
    check_same(before["study"] | {"stages": None}, now["study"] | {"stages": None}, (), folder)
    for ground in GROUNDS:
        if (at := first_change(before.get(ground), now[ground], (ground,))) is not None:
            problem = (
                f"{fact_name(at)}: {shown(now, at)} now, but {shown(before, at)} when the store "
                "was begun"
            )
            raise BadInput(
                str(folder),
                problem,
                f"begin another store with {setting.store}: results would not be comparable",
            )


def fact_name(at: Place) -> str:
    """Return the name of a fact, or of a part of it.

    Args:
        at: Its place in the facts.
    """
    if at in _NAMES:
        return _NAMES[at]
    kind, name, *parts = map(str, at)
    if kind == "builds":
        return f"version of {name}"
    assert kind == "data", at
    return ", ".join([f"data of {name}", *(_OF_DATA[part] for part in parts)])


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The accelerators of this machine.

    Attributes:
        tool: What told their names; None: there is neither NVML nor npu-smi.
        names: The name of each.
    """

    tool: str | None
    names: tuple[str, ...]

    @classmethod
    def found(cls) -> Self:
        """Return those of this machine."""
        with accelerators.Nvml.opened() as nvml:
            names = [str(gpu["name"]) for gpu in nvml.read()] if nvml else None
        if names:
            return cls(NVML, tuple(names))
        chips = accelerators.npu_names()
        if chips is not None:
            return cls(NPU_SMI, tuple(chips))
        return cls(None if names is None else NVML, ())

    def check(self, hardware: Hardware) -> None:
        """Compare them with the hardware of a study, if there is a tool that tells them.

        Args:
            hardware: The hardware that the study names.

        Raises:
            AtFault: They have another name, or are fewer.
        """
        if self.tool is None or not hardware.devices:
            return
        same = [
            name
            for name in self.names
            if is_named(hardware.name, name, shortened=self.tool == NPU_SMI)
        ]
        if not same:
            here = ", ".join(dict.fromkeys(self.names)) or "no accelerator"
            problem = f"is {hardware.name}, but {self.tool} finds {here} on this machine"
            raise AtFault(
                ("hardware", "name"), problem, "run it on the machine it names, or correct the name"
            )
        if hardware.devices > len(same):
            problem = f"the study has {hardware.devices}, but this machine has {len(same)}"
            raise AtFault(
                ("hardware", "devices"), problem, "run it on another machine, or reduce devices"
            )


def is_named(study_name: str, name: str, *, shortened: bool) -> bool:
    """Return whether a device may be what a study names; a name without a model, as "a box", fits
    any.

    Args:
        study_name: The study's name, such as "NVIDIA H100 SXM 80GB".
        name: The device's name, such as "NVIDIA H100 80GB HBM3".
        shortened: Whether names of models may be shortened: 910B for 910B3, and Ascend910 for 910C.
    """
    for part in (MEMORY, FORM):
        ours, theirs = (set(part.findall(text.lower())) for text in (study_name, name))
        if ours and theirs and not ours & theirs:
            return False
    models = _models(name)
    for word in _models(study_name):
        if shortened:
            same = any(model.startswith(word) or word.startswith(model) for model in models)
        else:
            same = word in models
        if not same:
            return False
    return True


def _models(name: str) -> Sequence[str]:
    """Return the words of a name that tell the model: those with a digit, without the maker's
    name before it.
    """
    words = re.findall(r"[a-z0-9]*\d[a-z0-9]*", name.lower())
    return [word.removeprefix("ascend") for word in words if not NO_MODEL.fullmatch(word)]

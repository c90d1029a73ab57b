"""Hardware: the accelerators that a study names, compared with those that this machine has."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.lab.study.spec.study import Hardware
from loadgen.util import accelerators

NVML, NPU_SMI = "NVML", "npu-smi"
# Words of a name that do not tell the model: memory, its kind, the form of the board, numbers of devices.
NO_MODEL = re.compile(r"\d+x|x\d+|\d{1,2}|\d+(gb|gib|g)|hbm\d\w*|sxm\d*|pcie\d*")
MEMORY = re.compile(r"(\d+) ?gi?b\b")
FORM = re.compile(r"sxm|pcie|nvl")


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

    def check(self, wanted: Hardware) -> None:
        """Compare them with the hardware of a study, if there is a tool that tells them.

        Raises:
            AtFault: They have another name, or are fewer.
        """
        if self.tool is None or not wanted.devices:
            return
        same = [name for name in self.names if is_named(wanted.name, name, shortened=self.tool == NPU_SMI)]
        if not same:
            here = ", ".join(dict.fromkeys(self.names)) or "no accelerator"
            problem = f"is {wanted.name}, but {self.tool} finds {here} on this machine"
            raise AtFault(("hardware", "name"), problem, "run it on the machine it names, or correct the name")
        if wanted.devices > len(same):
            problem = f"the study has {wanted.devices}, but this machine has {len(same)}"
            raise AtFault(("hardware", "devices"), problem, "run it on another machine, or reduce devices")


def is_named(wanted: str, name: str, *, shortened: bool) -> bool:
    """Return whether a device may be what a study names; a name without a model, as "a box", fits any.

    Args:
        wanted: The study's name, such as "NVIDIA H100 SXM 80GB".
        name: The device's name, such as "NVIDIA H100 80GB HBM3".
        shortened: Whether names of models may be shortened: 910B for 910B3, and Ascend910 for 910C.
    """
    for part in (MEMORY, FORM):
        ours, theirs = (set(part.findall(text.lower())) for text in (wanted, name))
        if ours and theirs and not ours & theirs:
            return False
    return all(
        any(word == own or (shortened and (own.startswith(word) or word.startswith(own))) for own in _models(name))
        for word in _models(wanted)
    )


def _models(name: str) -> Sequence[str]:
    """Return the words of a name that tell the model: those with a digit, without the maker's name before it."""
    words = re.findall(r"[a-z0-9]*\d[a-z0-9]*", name.lower())
    return [word.removeprefix("ascend") for word in words if not NO_MODEL.fullmatch(word)]

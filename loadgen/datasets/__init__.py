"""Data sets: where prompts come from, found by name.

A data set is a class with `from_settings(settings)` that meets the `Dataset` protocol. The built-in ones are known
here; other packages add theirs through the entry-point group `loadgen.datasets`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from loadgen.errors import BadInput
from loadgen.prompts import Dataset

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from loadgen.settings import RunSettings

__all__ = ["Dataset", "DatasetClass", "create", "find"]

GROUP = "loadgen.datasets"
BUILT_IN = {
    "csv": "loadgen.datasets.ready:ReadyDataset",
    "custom": "loadgen.datasets.ready:ReadyDataset",
    "hf": "loadgen.datasets.hf:HubDataset",
    "jsonl": "loadgen.datasets.ready:ReadyDataset",
    "prefix_repetition": "loadgen.datasets.prefix_repetition:PrefixRepetitionDataset",
    "prose": "loadgen.datasets.prose:ProseDataset",
    "random": "loadgen.datasets.random:RandomDataset",
    "sharegpt": "loadgen.datasets.sharegpt:ShareGPTDataset",
    "sonnet": "loadgen.datasets.prose:ProseDataset",
}


class DatasetClass(Protocol):
    """What a name in the registry stands for: something that makes a data set out of a run's settings.

    Where making prompts costs more than reading them, it may also have `made_of(settings)`: the paths of the files that
    they depend on beside the settings, or None. Then they are kept between runs (`loadgen.datasets.cache`).
    """

    def from_settings(self, settings: "RunSettings") -> Dataset:
        """Read what is needed and refuse what cannot work, with `BadInput`, before anything is sent."""


def create(settings: "RunSettings") -> Dataset:
    """Make the data set that `settings.dataset_name` names.

    Raises:
        BadInput: The name is unknown, or its settings, file or tokenizer cannot be used.
    """
    return find(settings.dataset_name).from_settings(settings)


def find(name: str) -> DatasetClass:
    """The data set of a name, built in or added by a package.

    Raises:
        BadInput: There is none, or it cannot be imported.
    """
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name].split(":")
        found: DatasetClass = getattr(import_module(module), attribute)
        return found
    installed = _installed()
    if name not in installed.names:
        known = ", ".join(sorted({*BUILT_IN, *installed.names}))
        raise BadInput("--dataset-name", f"there is no data set {name!r}", f"choose one of: {known}")
    try:
        found = installed[name].load()
    except (ImportError, AttributeError) as error:
        problem = f"{name!r} cannot be loaded ({error})"
        raise BadInput("--dataset-name", problem, "repair the package that adds it") from error
    return found


def _installed() -> "EntryPoints":
    """Scan the installed packages: some 10 ms that a built-in name does not pay."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)

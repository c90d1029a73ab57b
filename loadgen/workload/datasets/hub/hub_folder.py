"""`HubFolder`: the files of a data set, in a local copy, in the cache of the hub, or on the hub."""

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadgen.errors import BadInput, first_line
from loadgen.workload.datasets.hub.record_file import SUFFIXES
from loadgen.workload.files import hub
from loadgen.workload.files.mapped_file import DATASET_PATH

KIND = "dataset"  # of a repository
CONVERTED = "refs/convert/parquet"  # where the hub has the rows of data sets that are scripts
logger = logging.getLogger("loadgen")
REMEDY = "give its files, their folder, or its name on the hub"


@dataclass(frozen=True, slots=True)
class HubFolder:
    """The files of a data set; one of the hub is downloaded when it is first read.

    Attributes:
        name: As the user gave it.
        names: The paths of its files inside the folder, sorted.
        fetch: Returns a local path of such a file.
    """

    name: str
    names: tuple[str, ...]
    fetch: Callable[[str], Path]

    @classmethod
    def of(cls, name: str) -> "HubFolder":
        """Find the files of a data set: a file, a folder, or a name on the hub.

        Without network, or with HF_HUB_OFFLINE=1, a name on the hub means the files in the hub's cache.

        Raises:
            BadInput: There is no such file, folder or name, or neither the hub nor its cache has it.
        """
        path = Path(name).expanduser()
        if path.is_file():
            return cls(name, (path.name,), lambda _: path)
        if path.is_dir():
            return _in(path, name)
        if name.startswith(("/", ".", "~")) or name.endswith(SUFFIXES) or name.count("/") > 1:
            raise BadInput(DATASET_PATH, f"file or folder {name} does not exist", REMEDY)
        return _of_hub(name)

    def data_files(self) -> list[str]:
        """Return the names of those with records, all of one format: that of most of them."""
        found = [name for name in self.names if name.endswith(SUFFIXES) and not _is_about(name)]
        suffixes = [Path(name).suffix for name in found]
        usual = max(SUFFIXES, key=suffixes.count)
        return [name for name, suffix in zip(found, suffixes, strict=True) if suffix == usual]


def downloaded(name: str, file: str) -> Path | None:
    """Return the local path of a file of the hub, downloaded if it is not in the cache; None without a connection.

    Raises:
        BadInput: It cannot be downloaded.
    """
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, file, repo_type=KIND)
    if isinstance(found, str):
        return Path(found)
    if hub.why_unavailable() is not None:
        return None
    logger.warning("downloading %s of %s to the cache of the hub", file, name)
    return _fetched(name, file, None)


def _is_about(name: str) -> bool:
    """Return whether a file is about the data set: hidden, or of the package that made it."""
    return any(part.startswith(".") for part in name.split("/")) or name.endswith(("_info.json", "_infos.json"))


def _in(folder: Path, name: str) -> HubFolder:
    walked = (Path(root, file) for root, _, files in os.walk(folder, followlinks=True) for file in files)
    names = sorted(path.relative_to(folder).as_posix() for path in walked)
    return HubFolder(name, tuple(names), lambda file: folder / file)


def _of_hub(name: str) -> HubFolder:
    from huggingface_hub.errors import HFValidationError

    cause: Exception | None = None
    if (trouble := hub.why_unavailable()) is None:
        try:
            return _listed(name)
        except HFValidationError as error:
            raise BadInput(DATASET_PATH, f"invalid path or hub name {name!r}", REMEDY) from error
        except Exception as error:  # noqa: BLE001 - its errors, and those of its HTTP library, have no common class
            cause, problem = error, f"{name} cannot be loaded from the hub ({first_line(error)})"
    else:
        problem = f"{name} is not a file or folder, not in the cache of the hub, and the hub cannot be reached"
        problem += f" ({trouble})"
    if (found := _cached(name)) is None:
        raise BadInput(
            DATASET_PATH, problem, "give a local copy; a private or gated data set needs HF_TOKEN"
        ) from cause
    return found


def _listed(name: str) -> HubFolder:
    """List the files on the hub: of a data set without data files, those that the hub has converted."""
    from huggingface_hub import HfApi

    def listed(revision: str | None) -> HubFolder:
        names = HfApi().list_repo_files(name, repo_type=KIND, revision=revision)
        return HubFolder(name, tuple(sorted(names)), lambda file: _fetched(name, file, revision))

    own = listed(None)
    if not own.data_files():
        with contextlib.suppress(Exception):  # not every data set is converted
            return listed(CONVERTED)
    return own


def _fetched(name: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, file, repo_type=KIND, revision=revision))
    except (OSError, ValueError) as error:
        problem = f"{file} of {name} cannot be downloaded ({first_line(error)})"
        raise BadInput(DATASET_PATH, problem, "give a local copy") from error


def _cached(name: str) -> HubFolder | None:
    from huggingface_hub import snapshot_download

    for revision in (None, CONVERTED):
        with contextlib.suppress(OSError, ValueError):
            folder = snapshot_download(name, repo_type=KIND, revision=revision, local_files_only=True)
            if (found := _in(Path(folder), name)).data_files():
                return found
    return None

"""`HubFolder`: the files of a data set, in a local copy, in the cache of the hub, or on the hub.

`split_files` finds the files with the records of a subset and a split. `records` reads the records
of a file: the objects of a JSON list or of JSON lines, the lines of CSV, or the rows of Parquet.
"""

import contextlib
import csv
import io
import logging
import mmap
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from loadgen.errors import BadInput, first_line, setting
from loadgen.util.packages import require
from loadgen.workload.files import hub
from loadgen.workload.files.json_index import Structure
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file, parse_object

Record = dict[str, Any]
Declared = dict[str, dict[str, list[str]]]  # patterns of files, by subset and split
Files = TypeVar("Files", list[str], dict[str, list[str]])
KIND = "dataset"  # of a repository
CONVERTED = "refs/convert/parquet"  # where the hub has the rows of data sets that are scripts
README = "README.md"
SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
ABOUT = ("_info.json", "_infos.json")  # what packages write about a data set
SUBSET, SPLIT = setting.hf_subset, setting.hf_split
# of the splits, as they stand in paths; the first split that a data set has is the default
WORDS = {
    "train": ("train", "training"),
    "test": ("test", "testing", "eval", "evaluation"),
    "validation": ("validation", "valid", "val", "dev"),
}
REMEDY = "give its files, their folder, or its name on the hub"
RECORDS_REMEDY = f"give a file of the data set, as the hub has it: {', '.join(SUFFIXES)}"
MARK = b"\xef\xbb\xbf"  # byte order mark
SPACE = b" \t\r\n"
logger = logging.getLogger("loadgen")


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

        Without network, or with HF_HUB_OFFLINE=1, a name on the hub means the files in the hub's
        cache.

        Raises:
            BadInput: There is no such file, folder or name, or neither the hub nor its cache has
                it.
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
        data_names = [
            name
            for name in self.names
            if name.endswith(SUFFIXES)
            and not name.endswith(ABOUT)
            and not any(part.startswith(".") for part in name.split("/"))
        ]
        suffixes = [Path(name).suffix for name in data_names]
        usual = max(SUFFIXES, key=suffixes.count)
        return [name for name, suffix in zip(data_names, suffixes, strict=True) if suffix == usual]


def downloaded(name: str, file: str) -> Path | None:
    """Return the local path of a file of the hub, downloaded if it is not in the cache; None
    without a connection.

    Raises:
        BadInput: It cannot be downloaded.
    """
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, file, repo_type=KIND)
    if isinstance(path, str):
        return Path(path)
    if hub.why_unavailable() is not None:
        return None
    logger.warning("downloading %s of %s to the cache of the hub", file, name)
    return _fetched(name, file, None)


def split_files(folder: HubFolder, subset: str | None, split: str | None) -> list[str]:
    """Return the names of the files with the records of a subset and a split, in order.

    They are those that the data set's README declares, else those whose paths contain the words.
    The only data file of a local copy is used for any subset and split.

    Args:
        folder: The files of the data set.
        subset: The subset; None: the default one, or all files.
        split: The split; None: the first of train, test and validation that it has.

    Raises:
        BadInput: There are no such files.
    """
    files = folder.data_files()
    if not files:
        raise BadInput(
            DATASET_PATH,
            f"{folder.name} has no file of {', '.join(SUFFIXES)}",
            "give a folder with such files",
        )
    if len(files) == 1 and Path(folder.name).expanduser().exists():
        _mention_others(folder, files[0], subset, split)
        return files
    declared = _declared(folder)
    if declared:
        return _by_readme(folder, declared, subset, split)
    if subset is not None:
        files = _required(
            SUBSET, folder, subset, [name for name in files if _contains(name, subset)], files
        )
    by_split = {
        word_split: split_names
        for word_split, words in WORDS.items()
        if (split_names := [n for n in files if _is_of(n, words)])
    }
    if split is None:
        return next(iter(by_split.values()), files)
    if not by_split and split == "train":
        return files
    split_names = by_split.get(split) or [name for name in files if _contains(name, split)]
    return _required(SPLIT, folder, split, split_names, list(by_split) or files)


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file in its order, reading only as far as they are needed.

    Raises:
        BadInput: The file cannot be read, is not of its format, or needs a package that is not
            installed.
    """
    if path.suffix == ".parquet":
        require(DATASET_PATH, f"reading {path.name}", "pyarrow")
        from pyarrow import ArrowException, parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    yield from batch.to_pylist()
        except (OSError, ArrowException) as error:
            raise BadInput(
                DATASET_PATH, f"{path} is not Parquet ({error})", RECORDS_REMEDY
            ) from error
        return
    data = map_file(path, RECORDS_REMEDY)
    if path.suffix == ".csv":
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
        try:
            yield from csv.DictReader(text)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(DATASET_PATH, f"{path} is not CSV ({error})", RECORDS_REMEDY) from error
        return
    start = len(MARK) if data[: len(MARK)] == MARK else 0
    is_list = data[start : start + 4096].lstrip(SPACE)[:1] == b"["
    for where, content in _list_records(path, data) if is_list else _line_records(data):
        yield parse_object(path, where, content, RECORDS_REMEDY)


def _in(folder: Path, name: str) -> HubFolder:
    walked = (
        Path(root, file) for root, _, files in os.walk(folder, followlinks=True) for file in files
    )
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
        problem = (
            f"{name} is not a file or folder, not in the cache of the hub, and the hub "
            "cannot be reached"
        )
        problem += f" ({trouble})"
    if (cached := _cached(name)) is None:
        raise BadInput(
            DATASET_PATH, problem, "give a local copy; a private or gated data set needs HF_TOKEN"
        ) from cause
    return cached


def _listed(name: str) -> HubFolder:
    """List the files on the hub: of a data set without data files, those that the hub has
    converted.
    """
    from huggingface_hub import HfApi

    def listed(revision: str | None) -> HubFolder:
        names = HfApi().list_repo_files(name, repo_type=KIND, revision=revision)
        return HubFolder(name, tuple(sorted(names)), lambda file: _fetched(name, file, revision))

    folder = listed(None)
    if not folder.data_files():
        with contextlib.suppress(Exception):  # not every data set is converted
            return listed(CONVERTED)
    return folder


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
            folder = snapshot_download(
                name, repo_type=KIND, revision=revision, local_files_only=True
            )
            if (cached := _in(Path(folder), name)).data_files():
                return cached
    return None


def _list_records(path: Path, data: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    structure, number = Structure(data, b""), 0
    for spans in structure:
        for start, end, _ in spans.tolist():
            number += 1
            yield f"record {number}", data[start:end]
    if structure.end is None:
        raise BadInput(
            DATASET_PATH, f"{path} is cut off after record {number}", "copy the file again"
        )


def _line_records(data: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(iter(data.readline, b""), 1):
        if content := line.removeprefix(MARK).strip(SPACE):
            yield f"line {number}", content


def _by_readme(
    folder: HubFolder, declared: Declared, subset: str | None, split: str | None
) -> list[str]:
    config = subset or next((name for name in declared if name == "default"), next(iter(declared)))
    splits = _required(SUBSET, folder, config, declared.get(config), list(declared))
    chosen = split or next((name for name in WORDS if name in splits), next(iter(splits)))
    patterns = _required(SPLIT, folder, chosen, splits.get(chosen), list(splits))
    files = [
        name
        for name in folder.names
        if name.endswith(SUFFIXES) and any(fnmatchcase(name, p) for p in patterns)
    ]
    return _required(SPLIT, folder, chosen, files, list(splits))


def _declared(folder: HubFolder) -> Declared:
    if README not in folder.names:
        return {}
    import yaml

    text = folder.fetch(README).read_text(encoding="utf-8", errors="replace")
    head = re.match(r"---\s*\n(.*?)\n---", text, re.DOTALL)
    try:
        about = yaml.safe_load(head[1]) if head else None
    except yaml.YAMLError:
        return {}
    declared: Declared = {}
    for config in (about or {}).get("configs") or () if isinstance(about, dict) else ():
        # The patterns of each split: a list of them or a single one is the split train.
        data_files = config.get("data_files")
        entries = data_files if isinstance(data_files, list) else [data_files]
        by_split = dict[str, list[str]]()
        for entry in entries:
            split, paths = (
                (entry.get("split", "train"), entry.get("path"))
                if isinstance(entry, dict)
                else ("train", entry)
            )
            by_split.setdefault(split, []).extend(
                path for path in (paths if isinstance(paths, list) else [paths]) if path
            )
        splits = {split: paths for split, paths in by_split.items() if paths}
        if splits:
            declared[str(config.get("config_name", "default"))] = splits
    return declared


def _required(
    field: str, folder: HubFolder, name: str, files: Files | None, there: list[str]
) -> Files:
    if files:
        return files
    what = "subset" if field == SUBSET else "split"
    shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
    raise BadInput(field, f"{folder.name} has no {what} {name!r}", f"choose from {shown}")


def _mention_others(folder: HubFolder, only: str, subset: str | None, split: str | None) -> None:
    other = (
        split
        and any(_is_of(only, words) for words in WORDS.values())
        and not _is_of(only, WORDS.get(split, ()))
    )
    if other or (subset and not _contains(only, subset)):
        choice = ", ".join(
            f"{what} {name}" for what, name in (("subset", subset), ("split", split)) if name
        )
        logger.warning("%s has a single file, %s: it is used as %s", folder.name, only, choice)


def _is_of(name: str, words: tuple[str, ...]) -> bool:
    return any(_contains(name, word) for word in words)


def _contains(name: str, word: str) -> bool:
    """Return whether a path contains a word, between characters that are neither letters nor
    digits.
    """
    return re.search(rf"(?<![a-zA-Z0-9]){re.escape(word)}(?![a-zA-Z0-9])", name) is not None

"""Which files of a data set have the records of a subset and a split."""

import logging
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from loadgen.errors import BadInput
from loadgen.workload.datasets.hub.hub_folder import HubFolder
from loadgen.workload.datasets.hub.record_file import SUFFIXES
from loadgen.workload.files.mapped_file import DATASET_PATH

SUBSET, SPLIT = "--hf-subset", "--hf-split"
README = "README.md"
WORDS = {  # of the splits, as they stand in paths; the first split that a data set has is the default
    "train": ("train", "training"),
    "test": ("test", "testing", "eval", "evaluation"),
    "validation": ("validation", "valid", "val", "dev"),
}

Declared = dict[str, dict[str, list[str]]]  # patterns of files, by subset and split
Files = TypeVar("Files", list[str], dict[str, list[str]])

logger = logging.getLogger("loadgen")


def split_files(folder: HubFolder, subset: str | None, split: str | None) -> list[str]:
    """Return the names of the files with the records of a subset and a split, in order.

    They are those that the data set's README declares, else those whose paths contain the words. The only data file of
    a local copy is used for any subset and split.

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
            DATASET_PATH, f"{folder.name} has no file of {', '.join(SUFFIXES)}", "give a folder with such files"
        )
    if len(files) == 1 and Path(folder.name).expanduser().exists():
        _mention_others(folder, files[0], subset, split)
        return files
    declared = _declared(folder)
    if declared:
        return _by_readme(folder, declared, subset, split)
    if subset is not None:
        files = _required(SUBSET, folder, subset, [name for name in files if _contains(name, subset)], files)
    found = {known: own for known, words in WORDS.items() if (own := [n for n in files if _is_of(n, words)])}
    if split is None:
        return next(iter(found.values()), files)
    if not found and split == "train":
        return files
    own = found.get(split) or [name for name in files if _contains(name, split)]
    return _required(SPLIT, folder, split, own, list(found) or files)


def _by_readme(folder: HubFolder, declared: Declared, subset: str | None, split: str | None) -> list[str]:
    config = subset or next((name for name in declared if name == "default"), next(iter(declared)))
    splits = _required(SUBSET, folder, config, declared.get(config), list(declared))
    chosen = split or next((name for name in WORDS if name in splits), next(iter(splits)))
    patterns = _required(SPLIT, folder, chosen, splits.get(chosen), list(splits))
    own = [name for name in folder.names if name.endswith(SUFFIXES) and any(fnmatchcase(name, p) for p in patterns)]
    return _required(SPLIT, folder, chosen, own, list(splits))


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
    found: Declared = {}
    for config in (about or {}).get("configs") or () if isinstance(about, dict) else ():
        splits = _patterns(config.get("data_files"))
        if splits:
            found[str(config.get("config_name", "default"))] = splits
    return found


def _patterns(data_files: Any) -> dict[str, list[str]]:
    """Return the patterns of each split: a list of them or a single one is the split train."""
    given = data_files if isinstance(data_files, list) else [data_files]
    found = dict[str, list[str]]()
    for one in given:
        split, paths = (one.get("split", "train"), one.get("path")) if isinstance(one, dict) else ("train", one)
        found.setdefault(split, []).extend(path for path in (paths if isinstance(paths, list) else [paths]) if path)
    return {split: paths for split, paths in found.items() if paths}


def _required(field: str, folder: HubFolder, asked: str, found: Files | None, there: list[str]) -> Files:
    if found:
        return found
    what = "subset" if field == SUBSET else "split"
    shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
    raise BadInput(field, f"{folder.name} has no {what} {asked!r}", f"choose from {shown}")


def _mention_others(folder: HubFolder, only: str, subset: str | None, split: str | None) -> None:
    other = split and any(_is_of(only, words) for words in WORDS.values()) and not _is_of(only, WORDS.get(split, ()))
    if other or (subset and not _contains(only, subset)):
        asked = ", ".join(f"{what} {name}" for what, name in (("subset", subset), ("split", split)) if name)
        logger.warning("%s has a single file, %s: it is used as %s", folder.name, only, asked)


def _is_of(name: str, words: tuple[str, ...]) -> bool:
    return any(_contains(name, word) for word in words)


def _contains(name: str, word: str) -> bool:
    """Return whether a path contains a word, between characters that are neither letters nor digits."""
    return re.search(rf"(?<![a-zA-Z0-9]){re.escape(word)}(?![a-zA-Z0-9])", name) is not None

"""Names of the sides of a comparison, from the paths of their files."""

from collections.abc import Sequence
from pathlib import PurePath
from string import ascii_uppercase

MAX_NAME = 20  # characters
ENDINGS = (".json", ".jsonl")


def names(paths: Sequence[str]) -> list[str]:
    """Name sides after what their paths differ in: runs/base/1.json and runs/new/1.json are base and new.

    Returns:
        Letters if the paths give no short names that are all different.
    """
    # Of long names that begin alike, such as those that `--save-result` gives, the first word that differs is the name.
    known = list(map(PurePath, paths))
    parts = [(*path.parts[:-1], path.stem if path.suffix in ENDINGS else path.name) for path in known]
    ways = (
        [each[-1] for each in parts],
        _first_difference([each[::-1] for each in parts]),
        ["/".join(each[-2:]) for each in parts],
        _first_difference([each[-1].split("-") for each in parts]),
    )
    for found in ways:
        if len(set(found)) == len(found) and all(0 < len(name) <= MAX_NAME for name in found):
            return found
    return list(ascii_uppercase[: len(paths)])


def _first_difference(rows: Sequence[Sequence[str]]) -> list[str]:
    for items in zip(*rows, strict=False):
        if len(set(items)) > 1:
            return list(items)
    return [""] * len(rows)

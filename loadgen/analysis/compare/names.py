"""Names of the sides of a comparison, from the paths of their files."""

from collections.abc import Sequence
from pathlib import PurePath
from string import ascii_uppercase

MAX_NAME = 20  # characters
ENDINGS = (".json", ".jsonl")


def names(paths: Sequence[str]) -> list[str]:
    """Name sides after what their paths differ in: runs/base/1.json and runs/new/1.json are base and new.

    Of long names that begin alike, such as those that `--save-result` gives, the first word that differs is the name.

    Returns:
        Letters if the paths give no short names that are all different.
    """
    files = list(map(PurePath, paths))
    parts = [(*path.parts[:-1], path.stem if path.suffix in ENDINGS else path.name) for path in files]
    ways = (
        [part[-1] for part in parts],
        _first_difference([part[::-1] for part in parts]),
        ["/".join(part[-2:]) for part in parts],
        _first_difference([part[-1].split("-") for part in parts]),
    )
    for candidates in ways:
        has_no_twins = len(set(candidates)) == len(candidates)
        if has_no_twins and all(0 < len(name) <= MAX_NAME for name in candidates):
            return candidates
    return list(ascii_uppercase[: len(paths)])


def _first_difference(rows: Sequence[Sequence[str]]) -> list[str]:
    for items in zip(*rows, strict=False):
        if len(set(items)) > 1:
            return list(items)
    return [""] * len(rows)

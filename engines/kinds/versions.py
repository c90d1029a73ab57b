"""Versions of engines, read from installed files; an engine may live in another Python
environment than loadgen.
"""

import importlib.metadata
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

SITES = (
    "lib*/python3*/site-packages",
    "lib*/python3*/dist-packages",
    "local/lib/python3*/dist-packages",
)


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; 0.5.5.post1 and 0.5.5rc1 are read as 0.5.5."""
    match = re.match(r"\D*(\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in match[1].split(".")) if match else ()


def installed(executable: str, packages: Sequence[str]) -> str | None:
    """Return the version of the first of `packages` that the environment of a Python program has;
    reads files only.

    Args:
        executable: Looked up in PATH: a Python interpreter, or a script that names one in its first
            line.
        packages: Names of distributions.
    """
    path = shutil.which(executable)
    if path is None:
        return None
    prefix = (_interpreter(Path(path)) or Path(path)).parent.parent
    sites = [str(site) for pattern in SITES for site in sorted(prefix.glob(pattern))]
    for package in packages:
        for distribution in importlib.metadata.distributions(name=package, path=sites):
            return distribution.version
    return None


def _interpreter(script: Path) -> Path | None:
    """Return the interpreter that a script's first lines name; None if the file is not a script."""
    with script.open("rb") as file:
        start = file.read(1024)
    if not start.startswith(b"#!"):
        return None
    first, _, second = start.decode(errors="replace")[2:].partition("\n")
    words = first.split()
    if words and Path(words[0]).name == "env":
        named = shutil.which(words[-1])
        return Path(named) if named else None
    if (
        words and Path(words[0]).name == "sh"
    ):  # pip writes this if the path is too long for a first line
        quoted = re.match(r"'''exec' \"?([^\"]+?)\"? \"\$0\"", second)
        return Path(quoted[1]) if quoted else None
    return Path(words[0]) if words else None

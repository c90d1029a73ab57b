"""Versions of engines, found without starting them: an engine may live in an environment that is not ours."""

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SITES = ("lib*/python3*/site-packages", "lib*/python3*/dist-packages", "local/lib/python3*/dist-packages")
MOST_S = 5.0


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version: 0.5.5.post1 and 0.5.5rc1 count as 0.5.5, so a release candidate as its release."""
    found = re.match(r"\D*(\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in found[1].split(".")) if found else ()


def installed(executable: str, packages: Sequence[str]) -> str | None:
    """The version of the first of `packages` that the environment of a Python program has; reads files alone.

    Args:
        executable: Looked up in PATH: a Python interpreter, or a script that names one in its first line.
        packages: Names of distributions.
    """
    found = shutil.which(executable)
    if found is None:
        return None
    prefix = (_interpreter(Path(found)) or Path(found)).parent.parent
    sites = [str(site) for pattern in SITES for site in sorted(prefix.glob(pattern))]
    for package in packages:
        for distribution in importlib.metadata.distributions(name=package, path=sites):
            return distribution.version
    return None


def _interpreter(script: Path) -> Path | None:
    """The interpreter that a script's first lines name; None for a file that is no script."""
    with script.open("rb") as file:
        start = file.read(1024)
    if not start.startswith(b"#!"):
        return None
    first, _, second = start.decode(errors="replace")[2:].partition("\n")
    words = first.split()
    if words and Path(words[0]).name == "env":
        named = shutil.which(words[-1])
        return Path(named) if named else None
    if words and Path(words[0]).name == "sh":  # pip's way out where the interpreter's path is too long for a first line
        quoted = re.match(r"'''exec' \"?([^\"]+?)\"? \"\$0\"", second)
        return Path(quoted[1]) if quoted else None
    return Path(words[0]) if words else None


def reported(executable: str, pattern: str) -> str | None:
    """What `EXECUTABLE --version` says, by the first group of `pattern`; None if it says nothing of the kind in 5 s."""
    found = shutil.which(executable)
    if found is None:
        return None
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=MOST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(pattern, (done.stdout + done.stderr).decode(errors="replace"))
    return said[1] if said else None

"""Building: the package as it is given to others, made in a copy of the source, so that the
source stays as it is.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

PARTS = ("loadgen", "engines", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
SDIST = "from setuptools import build_meta; print(build_meta.build_sdist({to!r}))"
MAX_S = 900


class Failed(Exception):
    """A command did not do what was asked; says what it said."""


def sdist(folder: Path) -> Path:
    """The source distribution, made in a folder.

    Raises:
        Failed: It cannot be made.
    """
    source = folder / "source"
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=BUILT)
        else:
            shutil.copy(ROOT / part, source / part)
    for translated in source.rglob("*.c"):  # which setup.py would make anew, and leaves out
        translated.touch()
    called(sys.executable, "-c", SDIST.format(to=str(folder)), cwd=source)
    shutil.rmtree(source)
    (made,) = folder.glob("*.tar.gz")
    return made


def wheel(python: str, source: Path, folder: Path, *options: str) -> tuple[Path, str]:
    """The wheel that an interpreter makes of a source distribution, with a build environment of its
    own unless pip's options say otherwise.

    Returns:
        The wheel, and what was said meanwhile.

    Raises:
        Failed: It cannot be made.
    """
    said = called(
        python,
        "-m",
        "pip",
        "wheel",
        "--verbose",
        "--no-deps",
        *options,
        "--wheel-dir",
        str(folder),
        str(source),
    )
    (made,) = folder.glob("*.whl")
    return made, said


def called(*command: str, cwd: Path | None = None) -> str:
    """What a command says.

    Raises:
        Failed: It failed, or took too long.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment() | {"PYTHONDONTWRITEBYTECODE": ""},  # of which setuptools would warn
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MAX_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode:
        raise Failed(done.stdout)
    return done.stdout


def linted(program: str, *arguments: str) -> None:
    """Let a linter of this environment look at files; the test fails with what it finds."""
    try:
        called(str(Path(sys.executable).parent / program), *arguments, cwd=ROOT)
    except Failed as error:
        raise AssertionError(str(error)) from error

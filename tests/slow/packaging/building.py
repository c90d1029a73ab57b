"""Building: wheels of the compiler of this machine, and programs that look at what is built."""

import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

MAX_S = 900


class Failed(Exception):
    """A command did not do what was asked; says what it said."""


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


def warnings(said: str) -> list[str]:
    """What a build warned of: compilers', Cython's and setuptools' words."""
    return [line.strip() for line in said.splitlines() if re.search(r"\bwarning\b|Warning:", line)]


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

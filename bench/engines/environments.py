"""Environments: virtual environments with real engines, made once per recipe, in the user's
cache folder.
"""

import contextlib
import fcntl
import hashlib
import inspect
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MADE = "made"  # the file that tells a whole environment from one whose making was cut off
MAX_S = 3600.0


class CannotBeMade(Exception):
    """An environment that the package index does not have the packages for."""


def _cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "loadgen" / "engines"


# By the XDG base directory specification. The user's own, read before the tests turn to one that
# they throw away.
CACHE = _cache_folder()


@dataclass(frozen=True)
class Recipe:
    """What to install, step by step.

    Attributes:
        name: Of the engine.
        steps: Arguments of one `pip install` each.
        finish: What is to be done with the folder of packages in the end.
        python: The version that it needs, as "3.12"; empty: that of the tests.
    """

    name: str
    steps: tuple[tuple[str, ...], ...]
    finish: Callable[[Path], None] | None = None
    python: str = ""

    @property
    def key(self) -> str:
        """Another one for every other recipe, interpreter and kind of machine."""
        finish = inspect.getsource(self.finish) if self.finish else ""
        told = [self.steps, finish, self.python or sys.version, platform.machine()]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def made(
    recipe: Recipe, cache: Path = CACHE, run: Callable[[Sequence[str]], None] | None = None
) -> Path:
    """The folder of programs of a recipe's environment, which is made if it is not there.

    Made whole or not at all: what a maker that was killed has left is thrown away, and two makers
    wait for each other.

    Raises:
        CannotBeMade: A step failed.
    """
    run = run or install
    folder = cache / f"{recipe.name}-{recipe.key}"
    with alone(folder.with_suffix(".lock")):
        if not (folder / MADE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            run(
                [
                    f"python{recipe.python}" if recipe.python else sys.executable,
                    "-m",
                    "venv",
                    str(folder),
                ]
            )
            for step in recipe.steps:
                pip = [
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-input",
                ]
                run([str(folder / "bin" / "python"), *pip, *step])
            if recipe.finish is not None:
                (packages,) = folder.glob("lib/python3*/site-packages")
                recipe.finish(packages)
            (folder / MADE).touch()
    return folder / "bin"


def install(command: Sequence[str]) -> None:
    """Run one step, behind everything else that runs.

    Raises:
        CannotBeMade: It failed, or took more than an hour.
    """
    try:
        done = subprocess.run(
            ["nice", "-n", "10", *command],
            capture_output=True,
            text=True,
            timeout=MAX_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotBeMade(f"{' '.join(command)}: not done after {MAX_S:.0f} s") from None
    if done.returncode:
        raise CannotBeMade(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until no other process is in the same block; the lock is a file."""
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process
        yield

"""Wheels: one of each CPython that is wanted and at hand, installed by itself and tried.

`python -m tests.slow.packaging.wheels` makes each of the source distribution; they stay in dist/.
"""

import os
import re
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.source import ROOT
from tests.slow.packaging import building, smoke
from tests.slow.packaging.building import Failed, called

OUTPUT = ROOT / "dist"
ASK = (
    "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], "
    "bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
)


def wanted() -> list[str]:
    """The versions of CPython for which wheels are made: "3.11"."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    return [f"3.{name.removeprefix('cp3').removesuffix('-*')}" for name in told]


def interpreter(version: str) -> str | None:
    """A Python of that version, not free-threaded: in PATH, of pyenv or of uv; None where there
    is none.
    """
    return next((place for place in _places(version) if _is(place, version)), None)


def _places(version: str) -> Iterator[str]:
    yield from filter(None, [shutil.which(f"python{version}")])
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")).expanduser()
    yield from (
        str(path / "bin/python") for path in sorted(pyenv.glob(f"{version}.*"), reverse=True)
    )
    yield from (
        str(path / "bin/python3") for path in sorted(uv.glob(f"cpython-{version}.*"), reverse=True)
    )


def _is(python: str, version: str) -> bool:
    try:
        return called(python, "-c", ASK).split() == [version, "False"]
    except Failed:
        return False


def warnings(said: str) -> list[str]:
    """What a build warned of: compilers', Cython's and setuptools' words."""
    return [line.strip() for line in said.splitlines() if re.search(r"\bwarning\b|Warning:", line)]


def tried(version: str, source: Path) -> tuple[str, bool]:
    """Make the wheel of a version and run it; says what came of it, and whether that is as it
    should be.
    """
    python = interpreter(version)
    if python is None:
        return f"not run: there is no Python {version} here", True
    with tempfile.TemporaryDirectory(prefix="loadgen-wheel-") as name:
        folder = Path(name)
        try:
            called(python, "-m", "venv", str(folder / "venv"))
            own = str(folder / "venv/bin/python")
            made, said = building.wheel(own, source, folder)
            called(own, "-m", "pip", "install", "--quiet", str(made))
            called(own, smoke.__file__, cwd=folder)
        except Failed as error:
            return f"FAILED: {error}", False
        shutil.copy(made, OUTPUT)
    tag = f"cp{version.replace('.', '')}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not made.name.endswith(f"-{tag}-{tag}-{platform}.whl"):
        return f"FAILED: {made.name} has other tags than {tag}-{tag}-{platform}", False
    told = [f"  {line}" for line in warnings(said)]
    return "\n".join(
        [f"built and run: {made.name}" + (", with warnings" if told else ""), *told]
    ), not told


def main() -> None:
    """Try them all, in turn; exits with 1 where one failed."""
    OUTPUT.mkdir(exist_ok=True)
    good = True
    with tempfile.TemporaryDirectory(prefix="loadgen-sdist-") as name:
        source = building.sdist(Path(name))
        shutil.copy(source, OUTPUT)
        for version in wanted():
            told, is_good = tried(version, source)
            print(f"{version:<5} {told}", flush=True)
            good = good and is_good
    sys.exit(not good)


if __name__ == "__main__":
    main()

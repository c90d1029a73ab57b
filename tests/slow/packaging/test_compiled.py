"""The compiled modules compile without a warning: normally, with counters, and without epoll."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.helpers.source import ROOT, compiled
from tests.slow.packaging.building import called
from tests.slow.packaging.smoke import COMPILED

# As setup.py has them.
DIRECTIVES = ["-X", "boundscheck=False", "-X", "wraparound=False", "-X", "cdivision=True"]
# What Cython's own code in them is warned of is none of ours.
WARNINGS = [
    "-Wall",
    "-Wextra",
    *(f"-Wno-{name}" for name in ("unused-parameter", "missing-field-initializers")),
]
WARNINGS += ["-Wno-unknown-warning-option", "-Wno-cast-function-type", "-Werror"]
BUILT = "-DCYTHON_WITHOUT_ASSERTIONS"
WAYS = {
    "built": [BUILT],
    "debug": ["-DLOADGEN_DEBUG"],
    "no epoll": [BUILT, "-U__linux__", "-U__linux", "-Ulinux"],
}


@pytest.fixture(scope="module", params=COMPILED)
def translated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module in C; Cython has nothing to say of it."""
    source = f"loadgen/{request.param.replace('.', '/')}.pyx"
    made = tmp_path_factory.mktemp("c") / "module.c"
    said = called(
        sys.executable, "-m", "cython", "-3", *DIRECTIVES, "-o", str(made), source, cwd=ROOT
    )
    assert not [line for line in said.splitlines() if line.startswith("warning")]
    return made


@pytest.mark.parametrize("way", WAYS)
def test_module_compiles_without_a_warning(translated: Path, way: str) -> None:
    include = f"-I{sysconfig.get_paths()['include']}"
    called(
        os.environ.get("CC", "cc"), "-fsyntax-only", *WARNINGS, *WAYS[way], include, str(translated)
    )


def test_every_compiled_module_is_checked() -> None:
    assert {".".join(parts[1:]) for parts in compiled()} == set(COMPILED)

"""The compiled modules compile without a warning: normally, with counters, and without epoll."""

import os
import sysconfig

import pytest

from loadgen.cli.doctor.software import COMPILED
from tests.helpers.source import ROOT
from tests.slow.packaging.building import called

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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("module", COMPILED)
def test_module_compiles_without_a_warning(module: str, way: str) -> None:
    """The C that the build left beside the source; test_installed looks for Cython's warnings."""
    translated = (ROOT / module.replace(".", "/")).with_suffix(".c")
    include = f"-I{sysconfig.get_paths()['include']}"
    called(
        os.environ.get("CC", "cc"), "-fsyntax-only", *WARNINGS, *WAYS[way], include, str(translated)
    )

"""Chromium: the one that is installed, or Debian's package, unpacked once into the user's cache
folder without root.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines.environments import CACHE, CannotBeMade, install
from tests.qa.debian import unpacked

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
FOLDER = CACHE.parent / "chromium"
REMEDY = "install Chromium, or run this once on Debian with its package index in reach"
FONTS = """<?xml version="1.0"?>
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
<dir>/usr/share/fonts</dir>
<dir>{root}/usr/share/fonts</dir>
<cachedir>{root}/fonts</cachedir>
<alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True)
class Program:
    """An executable of Chromium.

    Attributes:
        path: Where it is.
        variables: Environment variables that it needs beside those of this process.
    """

    path: str
    variables: dict[str, str]


def chromium(folder: Path = FOLDER, run: Callable[[Sequence[str]], None] = install) -> Program:
    """Find an installed Chromium, or fetch one into `folder` on first use (100 MB).

    Raises:
        CannotBeMade: None is installed, and none can be fetched; the text says what to do.
    """
    for name in NAMES:
        if path := shutil.which(name):
            return Program(path, {})
    root, program = unpacked(folder, PACKAGES, _program, REMEDY, run)
    (root / "fonts.conf").write_text(FONTS.format(root=root))
    libraries = sorted({str(path.parent) for path in root.rglob("*.so*")})
    variables = {
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "FONTCONFIG_FILE": str(root / "fonts.conf"),
    }
    return Program(str(program), variables)


def _program(root: Path) -> Path:
    found = [
        path
        for name in ("headless_shell", "chromium-headless-shell", "chromium")
        for path in root.glob(f"usr/lib/*/{name}")
    ]
    if not found:
        raise CannotBeMade("no program was in the packages")
    return found[0]

"""Chromium: the one that is installed, or Debian's package, unpacked once into the user's cache folder without root."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.qa.engines.environments import CACHE, MADE, CannotBeMade, alone, install

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
    """A Chromium that can be started.

    Attributes:
        path: Of it.
        variables: What its environment needs beside the usual.
    """

    path: str
    variables: dict[str, str]


def chromium(folder: Path = FOLDER, run: Callable[[Sequence[str]], None] = install) -> Program:
    """One that is installed, else one in `folder`, which is made if it is not there: 100 MB over the network.

    Raises:
        CannotBeMade: There is none to be had; the remedy is part of it.
    """
    for name in NAMES:
        if path := shutil.which(name):
            return Program(path, {})
    root = folder / "root"
    with alone(folder.with_suffix(".lock")):
        if not (folder / MADE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            root.mkdir(parents=True)
            try:
                _unpacked(folder, root, run)
            except (OSError, CannotBeMade) as error:
                raise CannotBeMade(f"{REMEDY}: {error}") from error
            (root / "fonts.conf").write_text(FONTS.format(root=root))
            (folder / MADE).touch()
    libraries = sorted({str(path.parent) for path in root.rglob("*.so*")})
    variables = {"LD_LIBRARY_PATH": os.pathsep.join(libraries), "FONTCONFIG_FILE": str(root / "fonts.conf")}
    return Program(str(_program(root)), variables)


def _unpacked(folder: Path, root: Path, run: Callable[[Sequence[str]], None]) -> None:
    """Have apt work in a folder of our own: its lists, its packages, and nothing installed."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    own = [f"Dir::State={folder}/state", f"Dir::Cache={folder}/cache", "Dir::State::status=/var/lib/dpkg/status"]
    own += ["Debug::NoLocking=true", "APT::Sandbox::User=root"]
    options = [word for option in own for word in ("-o", option)]
    run(["apt-get", *options, "update"])
    run(["apt-get", *options, "install", "--download-only", "--no-install-recommends", "--yes", *PACKAGES])
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(root)])
    shutil.rmtree(folder / "cache")
    shutil.rmtree(folder / "state")
    _program(root)


def _program(root: Path) -> Path:
    found = [
        path
        for name in ("headless_shell", "chromium-headless-shell", "chromium")
        for path in root.glob(f"usr/lib/*/{name}")
    ]
    if not found:
        raise CannotBeMade("no program was in the packages")
    return found[0]


def version(program: Program) -> str:
    """What it says of itself."""
    asked = [program.path, "--version", "--no-sandbox"]
    return subprocess.run(
        asked, env=os.environ | program.variables, capture_output=True, text=True, check=True
    ).stdout.strip()

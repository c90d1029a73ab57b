"""Chromium: the one that is installed, or Debian's package, unpacked once into the user's cache folder without root."""

import os
import shutil
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
    """Download packages with apt into `folder` and unpack them into `root`; nothing is installed."""
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

"""Wheels for all platforms, and the source distribution: `python -m deploy.wheels [NAME...]` puts
them into dist/, as `make release-wheels` does.

The C of the compiled modules is the same for all, and is made once. Zig compiles it for each
platform on this machine. A wheel for one version of CPython is made where loadgen's cost is stated;
one wheel of the limited API (abi3) serves all versions elsewhere, and new versions everywhere.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from deploy import pythons

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = ROOT / "build/wheels"  # the same each time, so that Zig finds again what it compiled
PARTS = ("loadgen", "engines", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.c", "*.egg-info")
SDIST = "from setuptools import build_meta; build_meta.build_sdist({!r})"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = [line.split()[-1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
OLDEST = VERSIONS[0]  # from which on a wheel of the limited API serves
FLAGS = [
    *("-shared", "-fPIC", "-O2", "-g0", "-fwrapv", "-fvisibility=hidden", "-fno-sanitize=all"),
    *("-Wno-unused-function", "-DNDEBUG", "-DCYTHON_WITHOUT_ASSERTIONS=1"),
]
# The limited API has functions in place of two macros.
LIMITED = [
    f"-DPy_LIMITED_API=0x03{int(OLDEST.split('.')[1]):02x}0000",
    *("-DPyBytes_AS_STRING(o)=PyBytes_AsString(o)", "-DPyBytes_GET_SIZE(o)=PyBytes_Size(o)"),
]


@dataclass(frozen=True)
class Platform:
    """A system on a processor.

    Attributes:
        target: Its name in Zig.
        tags: Its names in wheels.
    """

    target: str
    tags: tuple[str, ...]

    @property
    def flags(self) -> list[str]:
        """Those of its linker; the process that loads a module has the symbols of Python."""
        if "macos" in self.target:
            return ["-Wl,-undefined,dynamic_lookup", "-Wl,-s"]
        return ["-Wl,--strip-all"]


def manylinux(machine: str) -> Platform:
    """Linux with glibc; numpy asks for a later one than 2.17 from Python 3.14 on."""
    tags = (f"manylinux2014_{machine}", f"manylinux_2_17_{machine}")
    return Platform(f"{machine}-linux-gnu.2.17", tags)


def musllinux(machine: str) -> Platform:
    """Linux with musl, as in Alpine."""
    return Platform(f"{machine}-linux-musl", (f"musllinux_1_2_{machine}",))


@dataclass(frozen=True)
class Wheel:
    """A wheel.

    Attributes:
        python: The version of CPython that it is for; None: OLDEST and all later ones.
        platform: What it is for.
    """

    python: str | None
    platform: Platform

    @property
    def tags(self) -> list[str]:
        """All that it fits."""
        python = f"cp{(self.python or OLDEST).replace('.', '')}"
        abi = python if self.python else "abi3"
        return [f"{python}-{abi}-{tag}" for tag in self.platform.tags]

    @property
    def suffix(self) -> str:
        """Of the name of a compiled module."""
        if self.python is None:
            return ".abi3.so"
        machine = self.platform.target.partition("-")[0]
        return f".cpython-{self.python.replace('.', '')}-{machine}-linux-gnu.so"

    @property
    def name(self) -> str:
        """By which it is asked for: "cp311-manylinux_2_17_x86_64"."""
        python, abi, platform = self.tags[-1].split("-")
        return f"{abi if abi == 'abi3' else python}-{platform}"


MACHINES = ("x86_64", "aarch64")
MACOS = Platform("aarch64-macos.11.0", ("macosx_11_0_arm64",))
WHEELS = [
    *(Wheel(version, manylinux(machine)) for version in VERSIONS for machine in MACHINES),
    *(Wheel(None, system(machine)) for system in (manylinux, musllinux) for machine in MACHINES),
    Wheel(None, MACOS),
]


def sdist(folder: Path) -> Path:
    """Make the source distribution in a folder, of a copy of the source.

    Raises:
        subprocess.CalledProcessError: It cannot be made.
    """
    with tempfile.TemporaryDirectory(prefix="loadgen-sdist-") as name:
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(name, part), symlinks=True, ignore=BUILT)
            else:
                shutil.copy(ROOT / part, name)
        _python("-c", SDIST.format(str(folder)), cwd=name)
    (made,) = folder.glob("*.tar.gz")
    return made


def translate(source: Path) -> None:
    """Unpack a source distribution into BUILD: to `source`, with the C of its modules, and the
    other files of a wheel to `tree`.
    """
    with tarfile.open(source) as archive:
        archive.extractall(BUILD, filter="data")
    (unpacked,) = BUILD.iterdir()
    unpacked.rename(BUILD / "source")
    for command, option in (("build_py", "--build-lib"), ("dist_info", "--output-dir")):
        _python("setup.py", "--quiet", command, option, str(BUILD / "tree"), cwd=BUILD / "source")


def pack(wheel: Wheel) -> None:
    """Compile the modules of a wheel, and pack it, of what is in BUILD.

    Raises:
        subprocess.CalledProcessError: A module cannot be compiled.
    """
    tree = BUILD / wheel.name
    shutil.copytree(BUILD / "tree", tree)

    def compile_module(module: Path) -> None:
        place = tree / module.relative_to(BUILD / "source").with_suffix(wheel.suffix)
        flags = [*FLAGS, *wheel.platform.flags, *([] if wheel.python else LIMITED)]
        headers = str(BUILD / "headers" / (wheel.python or OLDEST))
        target = ["-target", wheel.platform.target, "-I", headers]
        _python("-m", "ziglang", "cc", *target, *flags, str(module), "-o", str(place))
        if "musl" in wheel.platform.target:  # whose true name Zig does not write
            machine = wheel.platform.target.partition("-")[0]
            libc = f"libc.musl-{machine}.so.1"
            _tool("patchelf", "--replace-needed", "libc.so", libc, str(place))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_module, sorted((BUILD / "source").rglob("*.c"))))
    (info,) = tree.glob("*.dist-info")
    tags = "".join(f"Tag: {tag}\n" for tag in wheel.tags)
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: deploy.wheels\nRoot-Is-Purelib: false\n{tags}"
    )
    _tool("wheel", "pack", "--dest-dir", str(DIST), str(tree))


def main(argv: Sequence[str] | None = None) -> None:
    """Make those that are asked for, or all of them and the source distribution."""
    by_name = {wheel.name: wheel for wheel in WHEELS}
    parser = argparse.ArgumentParser(prog="python -m deploy.wheels", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(by_name))
    names = parser.parse_args(argv).names
    if unknown := set(names) - set(by_name):
        parser.error(f"no wheel is named {', '.join(sorted(unknown))}; choose from {[*by_name]}")
    if not names:
        shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    translate(sdist(DIST))
    for version in VERSIONS:
        pythons.python(version).copy_headers(BUILD / "headers" / version)
    for wheel in (by_name[name] for name in names or by_name):
        pack(wheel)
        print(f"made {wheel.name}", flush=True)


def _python(*arguments: str, cwd: str | Path = ROOT) -> None:
    subprocess.run([sys.executable, *arguments], cwd=cwd, check=True)


def _tool(name: str, *arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name(name)), *arguments], check=True)


if __name__ == "__main__":
    main()

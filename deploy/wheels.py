"""Wheels for all platforms, and the source distribution: `python -m deploy.wheels [NAME...]` puts
them into dist/, as `make release-wheels` does. Those that a dependency lacks go into dist/others.

The C of the compiled modules is the same for all, and is made once. Zig compiles it for each
platform on this machine. A wheel for one version of CPython is made where loadgen's cost is stated;
one wheel of the limited API (abi3) serves all versions elsewhere, and new versions everywhere.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from deploy import pythons

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = ROOT / "build/wheels"  # the same each time, so that Zig finds again what it compiled
PARTS = ("loadgen", "engines", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
SDIST = "from setuptools import build_meta; build_meta.build_sdist({!r})"
MODULES = (
    "import setuptools; from distutils.core import run_setup\n"
    "for each in run_setup('setup.py', stop_after='init').ext_modules:\n"
    "    print(each.name, *each.sources)"
)
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
        project: What it has.
    """

    python: str | None
    platform: Platform
    project: str = "loadgen"

    @property
    def folder(self) -> Path:
        """Where it is put: what is uploaded as loadgen has a folder of its own."""
        return DIST if self.project == "loadgen" else DIST / "others"

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
# hdrhistogram's index page has those for the other platforms.
OTHERS = [Wheel(None, system("aarch64"), "hdrhistogram") for system in (manylinux, musllinux)]


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
        for module in Path(name).rglob("*.c"):  # setup.py would make it anew, and leaves it out
            module.touch()
        _python("-c", SDIST.format(str(folder)), cwd=name)
    (made,) = folder.glob("*.tar.gz")
    return made


def download(project: str, folder: Path) -> Path:
    """Fetch the source distribution of a dependency, of the newest version that loadgen admits.

    Raises:
        subprocess.CalledProcessError: The index does not give it.
    """
    (requirement,) = [line for line in PROJECT["dependencies"] if line.startswith(project)]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-binary", project]
    _python("-m", "pip", "download", *options, "--dest", str(folder), requirement)
    (fetched,) = folder.glob("*.tar.gz")
    return fetched


def unpack(archive: Path, source: Path) -> Path:
    """Unpack a source distribution into a new folder, without the one folder that is in it.

    Returns:
        The new folder.
    """
    source.mkdir(parents=True)  # by tar: tarfile warns without a filter, which 3.11.2 does not know
    subprocess.run(
        ["tar", "-xzf", archive, "--strip-components=1", "-C", source],
        check=True,
    )
    return source


def translate(archive: Path, folder: Path) -> dict[str, Path]:
    """Unpack a source distribution into a folder: to `source`, with the C of its modules, and the
    other files of a wheel to `tree`.

    Returns:
        The C of each module, by the module's name.
    """
    source, tree = unpack(archive, folder / "source"), str(folder / "tree")
    for command, option in (("build_py", "--build-lib"), ("dist_info", "--output-dir")):
        _python("-Wignore", "setup.py", "--quiet", command, option, tree, cwd=source)
    modules = (line.split() for line in _python("-Wignore", "-c", MODULES, cwd=source).splitlines())
    return {module: source / file for module, file in modules}


def pack(wheel: Wheel, modules: Mapping[str, Path]) -> None:
    """Compile the modules of a wheel, and pack it, of what `translate` put into BUILD.

    Raises:
        subprocess.CalledProcessError: A module cannot be compiled.
    """
    tree = BUILD / wheel.project / wheel.name
    shutil.copytree(tree.with_name("tree"), tree)

    def compile_module(module: str) -> None:
        place = tree / (module.replace(".", "/") + wheel.suffix)
        flags = [*FLAGS, *wheel.platform.flags, *([] if wheel.python else LIMITED)]
        headers = str(BUILD / "headers" / (wheel.python or OLDEST))
        target = ["-target", wheel.platform.target, "-I", headers]
        _python("-m", "ziglang", "cc", *target, *flags, str(modules[module]), "-o", str(place))
        if "musl" in wheel.platform.target:  # whose true name Zig does not write
            machine = wheel.platform.target.partition("-")[0]
            libc = f"libc.musl-{machine}.so.1"
            _tool("patchelf", "--replace-needed", "libc.so", libc, str(place))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_module, sorted(modules)))
    (info,) = tree.glob("*.dist-info")
    tags = "".join(f"Tag: {tag}\n" for tag in wheel.tags)
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: deploy.wheels\nRoot-Is-Purelib: false\n{tags}"
    )
    wheel.folder.mkdir(exist_ok=True)
    _tool("wheel", "pack", "--dest-dir", str(wheel.folder), str(tree))


def main(argv: Sequence[str] | None = None) -> None:
    """Make those of loadgen that are asked for, or all; the source distribution; and OTHERS."""
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
    archives = {wheel.project: download(wheel.project, BUILD / "archives") for wheel in OTHERS}
    archives["loadgen"] = sdist(DIST)
    modules = {name: translate(archive, BUILD / name) for name, archive in archives.items()}
    for version in VERSIONS:
        pythons.python(version).copy_headers(BUILD / "headers" / version)
    for wheel in [*OTHERS, *(by_name[name] for name in names or by_name)]:
        pack(wheel, modules[wheel.project])
        print(f"made {wheel.project} {wheel.name}", flush=True)


def _python(*arguments: str, cwd: Path = ROOT) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def _tool(name: str, *arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name(name)), *arguments], check=True)


if __name__ == "__main__":
    main()

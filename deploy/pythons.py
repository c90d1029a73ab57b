"""Interpreters of each version of CPython for which wheels are made: those of this machine, and
those of small Debian roots, which are made where this machine has none (by mmdebstrap, as root).
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}  # of Debian, by their Pythons
ROOTS = Path(__file__).parents[1] / "build/roots"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# A root of another processor runs by qemu, which is registered in a namespace of the command's own.
ENTER = """
if [ -n "$1" ]; then
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    cat /usr/lib/binfmt.d/qemu-"$1".conf > /proc/sys/fs/binfmt_misc/register
fi
mkdir -p "$2/$3"
for folder in /dev /proc /sys "$3"; do mount --rbind "$folder" "$2/$folder"; done
cd "$2"
shift 3
exec chroot . "$@"
"""


class NoPython(Exception):
    """An interpreter is missing; says which."""


@dataclass(frozen=True)
class Python:
    """An interpreter.

    Attributes:
        path: Of it, in its root.
        root: The folder that it takes for `/`.
        machine: The processor that it is for: "x86_64".
    """

    path: str
    root: Path = Path("/")
    machine: str = platform.machine()

    def run(self, folder: Path, *arguments: str) -> str:
        """Run it and return what it prints; of files other than those of its root it sees a folder,
        whose `site` has its packages.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        command = [self.path, *arguments]
        if self.root != Path("/"):
            foreign = self.machine if self.machine != platform.machine() else ""
            unshare = ["unshare", "--user", "--map-root-user", "--mount"]
            enter = ["sh", "-euc", ENTER, "sh", foreign, str(self.root), str(folder)]
            command = [*unshare, *enter, *command]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/tmp",
            "PYTHONPATH": str(folder / "site"),
        }
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def copy_headers(self, folder: Path) -> None:
        """Put its headers into a new folder; they include none of elsewhere in its root."""
        ask = (
            "import sysconfig as s; print(s.get_paths()['include'], s.get_config_var('MULTIARCH'))"
        )
        include, multiarch = self.run(Path("/tmp"), "-c", ask).split()
        place = self.root / include.lstrip("/")
        shutil.copytree(place, folder)
        own = place.parent / multiarch / place.name / "pyconfig.h"  # Debian's other one includes it
        if own.exists():
            shutil.copy(own, folder)


@cache
def python(version: str, machine: str = platform.machine()) -> Python:
    """An interpreter of a version, not free-threaded: in PATH, of pyenv, of uv, or of Debian.

    Args:
        version: Such as "3.11".
        machine: The processor that it is for; another than this one's is emulated.

    Raises:
        NoPython: There is none, and there can be none.
    """
    if machine == platform.machine():
        for path in _paths(version):
            if _has_headers(path, version):
                return Python(path)
    if version not in SUITES:
        raise NoPython(f"There is no Python {version} here. Install it with pyenv or uv.")
    return Python(f"/usr/bin/python{version}", _debian(version, machine), machine)


def _debian(version: str, machine: str) -> Path:
    """The root of the Debian release that has a version of Python, made on first use."""
    root = ROOTS / f"python{version}-{machine}"
    if not root.exists():
        unfinished = ROOTS / f"{root.name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = ["mmdebstrap", "--quiet", "--variant=extract"]
        command += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
        command += [f"--architectures={DEBIAN[machine]}"]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"']  # mirrors of testing may be old
        command += [f"--include=python{version},libpython{version}-dev,libstdc++6", SUITES[version]]
        root.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*command, str(unfinished)], check=True, stdout=subprocess.DEVNULL)
        for folder in ("proc", "sys"):
            (unfinished / folder).mkdir(exist_ok=True)
        unfinished.rename(root)
    return root


def _paths(version: str) -> Iterator[str]:
    yield from filter(None, [shutil.which(f"python{version}")])
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")).expanduser()
    places = [*pyenv.glob(f"{version}.*/bin/python"), *uv.glob(f"cpython-{version}.*/bin/python3")]
    yield from map(str, sorted(places, reverse=True))


def _has_headers(path: str, version: str) -> bool:
    ask = (
        "import os, sys, sysconfig; print('%d.%d' % sys.version_info[:2], "
        "bool(sysconfig.get_config_var('Py_GIL_DISABLED')), "
        "os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'))"
    )
    answer = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
    return answer.stdout.split() == [version, "False", "True"]

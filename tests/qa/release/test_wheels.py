"""The wheels in dist/, which `make release-wheels` made: their tags are true, an index would take
ours, with those of others nothing is compiled, and they measure the simulator on each version of
CPython.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import pythons
from deploy.wheels import DIST, OLDEST, OTHERS, VERSIONS, WHEELS, Wheel
from tests.helpers.command_line import environment
from tests.helpers.source import ROOT
from tests.qa.release import feed
from tests.slow.docs import test_action
from tests.slow.packaging import smoke

pytestmark = [pytest.mark.release, pytest.mark.timeout(900)]

TOOLS = Path(sys.prefix) / "release/bin"
X86_64, AARCH64 = "manylinux_2_17_x86_64", "manylinux_2_17_aarch64"
MAX_RATIO, ROUNDS = 1.25, 5  # of the time per event with the limited API
ALL = [*WHEELS, *OTHERS]
LINUX = [wheel for wheel in ALL if "linux" in wheel.name]
LIMITED = [wheel for wheel in ALL if wheel.python is None]
# Where uv finds what has no wheel on the index.
FOUND = ["--only-binary", ":all:", "--find-links", OTHERS[0].folder]
UV_PLATFORMS = {
    "manylinux_2_17_x86_64": "x86_64-manylinux_2_28",
    "manylinux_2_17_aarch64": "aarch64-manylinux_2_28",
    "musllinux_1_2_x86_64": "x86_64-unknown-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-unknown-linux-musl",
    "macosx_11_0_arm64": "aarch64-apple-darwin",
}
# What has a wheel, and a Python to run it: its name, and the version.
RUNS = [
    *((f"cp{version.replace('.', '')}-{X86_64}", version) for version in VERSIONS),
    *((f"abi3-{X86_64}", version) for version in (OLDEST, VERSIONS[-1])),
    (f"cp{OLDEST.replace('.', '')}-{AARCH64}", OLDEST),
    (f"abi3-{AARCH64}", VERSIONS[-1]),
]


def told(tool: str, *arguments: str | Path) -> str:
    """What a tool prints; the test fails if the tool does."""
    done = subprocess.run(
        [TOOLS / tool, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment() | {"UV_SYSTEM_CERTS": "1"},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def file(wheel: Wheel) -> Path:
    """The file of a wheel."""
    python, abi, _ = wheel.tags[0].split("-")
    name = f"{wheel.project}-*-{python}-{abi}-*{wheel.platform.tags[-1]}*.whl"
    (path,) = wheel.folder.glob(name)
    return path


def named(name: str) -> Wheel:
    """The wheel of a name."""
    (wheel,) = [wheel for wheel in WHEELS if wheel.name == name]
    return wheel


def installed(name: str, version: str, folder: Path) -> pythons.Python:
    """Put a wheel and what it needs into `site` of a folder, of wheels alone: nothing is compiled.

    Returns:
        A Python that runs it.
    """
    machine = name.rpartition("_17_")[2]
    platform = ["--python-version", version, "--python-platform", f"{machine}-manylinux_2_28"]
    install = ["pip", "install", "--quiet", *platform, *FOUND]
    told("uv", *install, "--target", folder / "site", file(named(name)))
    return pythons.python(version, machine)


def test_every_wheel_was_made_and_nothing_else() -> None:
    assert set(DIST.rglob("*.whl")) == {file(wheel) for wheel in ALL}


@pytest.mark.parametrize("wheel", LINUX, ids=lambda wheel: f"{wheel.project}-{wheel.name}")
def test_tag_is_what_auditwheel_says(wheel: Wheel) -> None:
    text = told("auditwheel", "show", file(wheel))
    assert re.findall(r'"(\w+)"', text)[0] == wheel.platform.tags[-1], text


def test_limited_api_is_kept() -> None:
    for wheel in LIMITED:
        told("abi3audit", file(wheel))


def test_limited_api_costs_little(tmp_path: Path) -> None:
    """Per event, on a quiet machine; the least of runs in turn."""
    names = [f"cp{OLDEST.replace('.', '')}-{X86_64}", f"abi3-{X86_64}"]
    script = str(shutil.copy(feed.__file__, tmp_path))
    folders = [tmp_path / name for name in names]
    each = [installed(name, OLDEST, folder) for name, folder in zip(names, folders, strict=True)]
    rounds = [
        [float(python.run(folder, script)) for python, folder in zip(each, folders, strict=True)]
        for _ in range(ROUNDS)
    ]
    of_own_version, of_limited_api = map(min, zip(*rounds, strict=True))
    assert of_limited_api <= MAX_RATIO * of_own_version


def test_an_index_would_take_all_files() -> None:
    ours = [*DIST.glob("loadgen-*.whl"), *DIST.glob("loadgen-*.tar.gz")]
    assert "FAILED" not in told("twine", "check", "--strict", *ours)


@pytest.mark.parametrize("version", [OLDEST, VERSIONS[-1]])
@pytest.mark.parametrize("tag", UV_PLATFORMS)
def test_nothing_is_compiled_where_loadgen_has_a_wheel(tag: str, version: str) -> None:
    platform = ["--python-version", version, "--python-platform", UV_PLATFORMS[tag]]
    pins = told("uv", "pip", "compile", "--quiet", *platform, *FOUND, ROOT / "pyproject.toml")
    assert "hdrhistogram==" in pins


def test_others_are_wheels_that_the_index_lacks() -> None:
    for wheel in OTHERS:
        platform = ["--python-platform", UV_PLATFORMS[wheel.platform.tags[-1]]]
        compiled = ["pip", "compile", *platform, "--only-binary", ":all:"]
        with pytest.raises(AssertionError, match=f"{wheel.project}.* has no usable wheels"):
            told("uv", *compiled, ROOT / "pyproject.toml")


@pytest.mark.parametrize(("name", "version"), RUNS)
def test_installed_wheel_measures_the_simulator(name: str, version: str, tmp_path: Path) -> None:
    python = installed(name, version, tmp_path)
    script = shutil.copy(smoke.__file__, tmp_path)
    assert f"loadgen runs on Python {version}." in python.run(tmp_path, script)


def test_action_installs_a_wheel_that_measures_the_simulator(tmp_path: Path) -> None:
    version = "".join(map(str, sys.version_info[:2]))
    command = test_action.installed(file(named(f"cp{version}-{X86_64}")), tmp_path) / "loadgen"
    run = [command, "run", "--engine", "sim", "--num-prompts", "20", "--random-input-len", "16"]
    env = environment() | {"PYTHONPATH": ""}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     20" in done.stdout

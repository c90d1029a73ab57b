"""The package as users install it: source distribution, wheel, editable install, and by tools
without an install.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy import wheels
from loadgen.cli.doctor.software import COMPILED
from tests.helpers.command_line import environment
from tests.helpers.source import ROOT
from tests.slow.packaging import building, smoke

BIN = Path(sys.executable).parent
BUILD_LOG = Path(sys.prefix) / "build.log"
PLACE = re.compile(r"\.(?:c|p[yx][xid]):\d")  # of a warning in our sources

IMPORT_ALL = """
import importlib, pkgutil, loadgen
for module in pkgutil.walk_packages(loadgen.__path__, "loadgen."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(loadgen.__file__)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The wheel, and what the build printed: of the C that the build of this environment left
    beside the same sources, since to translate them again takes longer than to compile them.
    """
    unpacked = wheels.unpack(source, tmp_path_factory.mktemp("unpacked") / "source")
    for module in COMPILED:
        translated = Path(*module.split(".")).with_suffix(".c")
        shutil.copy(ROOT / translated, unpacked / translated)
    place = tmp_path_factory.mktemp("wheel")
    return building.wheel(sys.executable, unpacked, place, "--no-build-isolation")


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, str]) -> Path:
    return built[0]


@pytest.mark.timeout(400)
def test_modules_of_the_wheel_are_compiled_without_a_warning(built: tuple[Path, str]) -> None:
    _, printed = built
    assert [line for line in building.warnings(printed) if PLACE.search(line)] == []


def test_modules_of_this_environment_are_translated_without_a_warning() -> None:
    if not BUILD_LOG.exists():
        pytest.skip(f"make has not built this environment: there is no {BUILD_LOG}")
    printed = BUILD_LOG.read_text()
    assert "Cythonizing" in printed
    assert [line for line in building.warnings(printed) if PLACE.search(line)] == []


@pytest.mark.timeout(400)
def test_the_wheel_has_one_top_level_name_and_everything_that_is_needed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"loadgen"}
    for needed in (
        "loadgen/py.typed",
        "loadgen/core/record.pyi",
        "loadgen/workload/files/json_index.pyi",
        "loadgen/engines/sim/tokenizer.json",
        "loadgen/document/templates/base.html.j2",
    ):
        assert needed in names
    assert sum(name.endswith(".so") for name in names) == len(COMPILED)
    assert not [name for name in names if name.startswith("bench/")]

    assert not [name for name in names if name.endswith((".c", ".pyx"))]


@pytest.mark.timeout(400)
def test_the_wheel_works_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    env = environment() | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
    # Also where the working folder has other modules of these names, as a checkout does.
    other = tmp_path / "checkout/loadgen"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('this is not what is installed')")
    done = subprocess.run(
        [sys.executable, smoke.__file__],
        cwd=other.parent,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("loadgen runs on Python")


@pytest.mark.parametrize("where", ["root", "elsewhere"])
def test_the_editable_install_imports_from_anywhere(where: str, tmp_path: Path) -> None:
    folder = ROOT if where == "root" else tmp_path
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == ROOT / "loadgen" / "__init__.py"


@pytest.mark.timeout(400)
def test_source_distribution_has_sources_and_no_build_output(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    places = {"loadgen": "loadgen", "engines": "loadgen/engines"}  # of folders in a distribution
    tracked = [
        f"{place}/{path.relative_to(ROOT / folder)}"
        for folder, place in places.items()
        for path in (ROOT / folder).rglob("*.p*")
    ]
    wanted = {
        path for path in tracked if Path(path).suffix in (".py", ".pyi", ".pyx", ".pxd", ".pxi")
    }
    assert wanted <= names
    assert not [name for name in names if name.endswith((".c", ".so"))]


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("loadgen/wire.c:1:2: warning: unused variable 'x' [-Wunused-variable]", True),
        ("warning: loadgen/core/record.pyx:1:2: Unreachable code", True),
        ("  SetuptoolsDeprecationWarning: License classifiers are deprecated.", True),
        ("copying loadgen/util/number_format.py -> build/lib/loadgen", False),
        ("copying loadgen/warnings.py -> build/lib/loadgen", False),
    ],
)
def test_build_warnings_are_detected(line: str, is_one: bool) -> None:
    assert building.warnings(line) == ([line.strip()] if is_one else [])


def output(*command: str, **variables: str) -> str:
    """What a command of this environment prints; the test fails if the command does."""
    name, *arguments = command
    # uv does not use the system's list of trusted certificates unless told, and a private package
    # index may need it.
    added = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "UV_SYSTEM_CERTS": "1"}
    done = subprocess.run(
        [str(BIN / name), *arguments],
        cwd=ROOT,
        env=environment() | added | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.timeout(400)
def test_package_index_would_take_source_and_wheel(source: Path, wheel: Path) -> None:
    assert output("twine", "check", "--strict", str(source), str(wheel)).count("PASSED") == 2


@pytest.mark.timeout(400)
def test_pipx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    printed = output(
        "pipx", "run", "--spec", str(wheel), "loadgen", "version", PIPX_HOME=str(tmp_path)
    )
    assert printed.splitlines()[-1].startswith("loadgen ")


@pytest.mark.timeout(400)
def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    printed = output("uvx", "--from", str(wheel), "loadgen", "version", UV_CACHE_DIR=str(tmp_path))
    assert printed.splitlines()[-1].startswith("loadgen ")


def test_image_is_built_from_the_source_of_a_wheel_and_nothing_else() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == {*wheels.PARTS}
    assert "**/*.so" in lines  # compiled for this machine's interpreter


def test_containerfile_has_no_findings() -> None:
    building.linted("hadolint", str(ROOT / "Containerfile"))

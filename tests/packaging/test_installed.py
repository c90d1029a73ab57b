"""The package as others get it: a wheel with one top-level name, an editable install that imports from anywhere."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.commands.calling import environment

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, loadgen
for module in pkgutil.walk_packages(loadgen.__path__, "loadgen."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(loadgen.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.timeout(400)
def test_the_wheel_has_one_top_level_name_and_everything_that_is_needed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"loadgen"}
    for needed in (
        "loadgen/py.typed",
        "loadgen/wire.pyi",
        "loadgen/datasets/structure.pyi",
        "loadgen/engines/sim/tokenizer.json",
        "loadgen/bench/__init__.py",
        "loadgen/pages/templates/base.html.j2",
    ):
        assert needed in names
    assert sum(name.endswith(".so") for name in names) == 5


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
    run = ["-m", "loadgen", "run", "--num-prompts", "5", "--max-concurrency", "2", "--random-input-len", "8"]
    done = subprocess.run(
        [sys.executable, *run], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     5" in done.stdout


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

"""What macOS gets, as far as Linux can show it: the compiled modules without stamps of the kernel,
epoll and timerfd, in a Python that does not call itself Linux. Runs are complete, and each time is
that of a read, with a bound; that the bound holds is tested in tests/integration/faults.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deploy import pythons
from tests.helpers.command_line import SHORT, TOKENIZER, environment, served
from tests.helpers.source import ROOT, compiled
from tests.slow.packaging.building import called

NOT_LINUX = ["-U__linux__", "-U__linux", "-Ulinux"]
OTHER_SYSTEM = "import sys; sys.platform = 'unix'"
COUNT = 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this package, of which the modules that ask for Linux are compiled without."""
    folder = tmp_path_factory.mktemp("portable")
    shutil.copytree(ROOT / "loadgen", folder / "loadgen", ignore=shutil.ignore_patterns("*.c"))
    # Debian's pyconfig.h is empty where __linux__ is not defined.
    headers = folder / "headers"
    pythons.Python(sys.executable).copy_headers(headers)
    (folder / "sitecustomize.py").write_text(OTHER_SYSTEM)

    def compile_module(module: Path) -> None:
        place = (folder / module).with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
        flags = ["-shared", "-fPIC", "-O1", "-DCYTHON_WITHOUT_ASSERTIONS", *NOT_LINUX]
        source = str(ROOT / module.with_suffix(".c"))
        called(os.environ.get("CC", "cc"), *flags, f"-I{headers}", source, "-o", str(place))

    modules = [Path(*parts) for parts in compiled()]
    asking = [
        module for module in modules if "__linux__" in (ROOT / module).with_suffix(".c").read_text()
    ]
    assert len(asking) > 5
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_module, asking))
    return folder


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The simulator on Linux, whose times are exact."""
    with served() as (url, _):
        yield url


def measured(site: Path, *flags: str) -> dict[str, Any]:
    """The result of a run of the package there, all of whose requests must succeed."""
    command = [sys.executable, "-m", "loadgen", "run", "--json", "--num-prompts", str(COUNT)]
    command += ["--tokenizer", TOKENIZER, *SHORT, *flags]
    done = subprocess.run(
        command,
        cwd=site,
        env=environment() | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["completed"] == COUNT, done.stderr
    return result


@pytest.mark.parametrize(
    "load", [["--rate", "100"], ["--max-concurrency", "4"], ["--rate", "100", "--workers", "2"]]
)
def test_run_is_complete_with_times_of_reads(site: Path, url: str, load: list[str]) -> None:
    tokens = measured(site, "--base-url", url, *load)["loadgen"]["tokens"]
    assert tokens["token_events"] == COUNT * 4
    assert tokens["user_stamped_events"] == tokens["token_events"]
    assert tokens["unbounded_events"] == 0


def test_engine_is_refused_with_a_way_to_go_on(site: Path) -> None:
    command = [sys.executable, "-m", "loadgen", "run", "--engine", "sim", "--num-prompts", "5"]
    done = subprocess.run(
        command,
        cwd=site,
        env=environment() | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "start the server yourself, and give its --base-url" in done.stderr

"""The default install resolves beside the packages that vLLM pins, so that both fit one
environment.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

# Of the requirements of vLLM (its CPU build, 2026-11), those of packages that a default install of
# loadgen has too.
VLLM = (
    "aiohttp>=3.14.3",
    "huggingface_hub>=1.31.0",
    "msgspec",
    "prometheus_client>=0.18.0",
    "pyyaml",
    "setuptools==78.1.1",
    "tokenizers>=0.23.2",
    "transformers>=5.16.1,<5.20.0",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]


def resolved(folder: Path, python: str, *requirements: str) -> dict[str, str]:
    """The version of each package that would be installed for a version of Python; the test
    fails if none can be.
    """
    file = folder / "requirements.in"
    file.write_text("\n".join(requirements))
    uv = str(Path(sys.executable).parent / "uv")
    options = ["--quiet", "--no-header", "--no-annotate", "--python-version", python]
    done = subprocess.run(
        [uv, "pip", "compile", *options, str(file)],
        env=environment() | {"UV_SYSTEM_CERTS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pins = (line.partition(" ")[0].split("==") for line in done.stdout.splitlines())
    return dict(pins)


# `make qa` tries those between the oldest and the newest.
@pytest.mark.parametrize(
    "python",
    [
        VERSIONS[0],
        *(pytest.param(version, marks=pytest.mark.qa_only) for version in VERSIONS[1:-1]),
        VERSIONS[-1],
    ],
)
def test_default_install_resolves_beside_vllm(python: str, tmp_path: Path) -> None:
    versions = resolved(tmp_path, python, *PROJECT["dependencies"], *VLLM)
    assert versions["setuptools"] == "78.1.1"
    assert {"hdrhistogram", "prometheus-client"} <= set(versions)


def test_newest_versions_that_the_bounds_admit_need_no_other_setuptools(tmp_path: Path) -> None:
    """An installer that finds vLLM's setuptools takes the newest version first, and would
    replace setuptools for it.
    """
    libraries = [
        line
        for line in PROJECT["dependencies"]
        if line.startswith(("hdrhistogram", "prometheus-client"))
    ]
    newest = resolved(tmp_path, "3.12", *libraries)
    pins = [f"{name}=={newest[name]}" for name in ("hdrhistogram", "prometheus-client")]
    assert resolved(tmp_path, "3.12", *pins, *VLLM)["setuptools"] == "78.1.1"

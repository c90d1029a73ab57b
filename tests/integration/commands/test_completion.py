"""Shell completion as a shell asks for it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import LOADGEN, environment, loadgen
from tests.helpers.source import lazy_packages

ASKED = {
    "_ARGCOMPLETE": "1",
    "_ARGCOMPLETE_IFS": " ",
    "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    "_ARGCOMPLETE_SHELL": "bash",
}
HEAVY = {*lazy_packages(), "asyncio", "multiprocessing", "numpy", "ssl"} - {"argcomplete"}


def ask(folder: Path, line: str, *options: str) -> tuple[list[str], str]:
    """What a shell is offered for a command line, and what was printed."""
    found = folder / "offered"
    found.touch()
    asked = {
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
    }
    done = subprocess.run(
        [sys.executable, *options, *LOADGEN[1:]],
        cwd=folder,
        env=environment() | ASKED | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return found.read_text().split(), done.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("loadgen se", {"search", "serve"}),
        ("loadgen run --max-", {"--max-concurrency", "--max-error-rate", "--max-think-time"}),
        ("loadgen run --rate 3 --base", {"--base-url"}),
        ("loadgen run --latency-from ", {"due", "sent"}),
        ("loadgen run --dataset-name s", {"sharegpt", "sonnet", "spec_bench", "speed_bench"}),
        (
            "loadgen run --backend openai-",
            {"openai-chat", "openai-embeddings", "openai-embeddings-chat", "openai-responses"},
        ),
        ("loadgen run --engine vllm", {"vllm", "vllm-ascend", "vllm-cpu"}),
        ("loadgen search --over ", {"rate", "concurrency"}),
        ("loadgen tune plan --", {"--help", "--json"}),
        ("loadgen report a", {"a-result.json"}),
        ("loadgen help run jud", {"judgement"}),
        ("loadgen tea --", set()),
    ],
)
def test_a_begun_command_line_is_completed(tmp_path: Path, line: str, offered: set[str]) -> None:
    (tmp_path / "a-result.json").touch()
    assert set(ask(tmp_path, line)[0]) == offered


def test_completion_imports_nothing_heavy(tmp_path: Path) -> None:
    offered, said = ask(tmp_path, "loadgen run --ra", "-X", "importtime")
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in said.splitlines()
        if "|" in line
    }
    assert "--rate" in offered
    assert {"argparse", "argcomplete"} <= imported
    assert imported & HEAVY == set()


def test_where_a_package_fails_a_shell_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "argcomplete.py").write_text("raise ImportError")  # found before the package
    assert ask(tmp_path, "loadgen se") == ([], "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_code() -> None:
    code = loadgen("completion", "bash").stdout
    done = subprocess.run(
        ["bash", "-c", f"{code}\ncomplete -p loadgen"], capture_output=True, text=True, check=True
    )
    assert "-F _python_argcomplete loadgen" in done.stdout

"""Limits of the machine: certain needs are refused before the run, likely ones are warned of."""

import subprocess

import numpy as np
import pytest

from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from tests.helpers.command_line import LOADGEN, SHORT, TOKENIZER, environment
from tests.helpers.console_lines import whole

FILES = 200


def run(
    server: Process, *flags: str, files: int | None = None
) -> "subprocess.CompletedProcess[str]":
    """`loadgen run` against a metronome, by a user whose processes may open so many files."""
    command = [
        *LOADGEN,
        "run",
        "--base-url",
        server.url,
        "--backend",
        "openai-chat",
        "--tokenizer",
        TOKENIZER,
    ]
    limited = ["sh", "-c", f'ulimit -n {files} && exec "$0" "$@"'] if files else []
    return subprocess.run(
        [*limited, *command, *SHORT, *flags, "--no-preflight", "--quiet", "--full"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        (["--num-prompts", "500", "--rate", "inf"], "--max-concurrency"),
        (["--num-prompts", "900", "--max-concurrency", "500"], "--max-concurrency"),
        (
            ["--rate", "10", "--num-prompts", "900", "--warm-connections", "500"],
            "--warm-connections",
        ),
    ],
    ids=["a burst", "a cap", "connections ahead"],
)
def test_more_connections_than_files_are_refused_before_anything_is_sent(
    metronome: Process, flags: list[str], flag: str
) -> None:
    Truth.forget(metronome.url)
    done = run(metronome, *flags, files=FILES)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"loadgen run: {flag}: 500 ")
    assert f"this process may have {FILES - 64}" in line
    assert "ulimit -n 1500" in line
    assert len(Truth.fetch(metronome.url).id) == 0


def test_a_rate_that_is_likely_to_need_more_files_is_sent_with_a_warning(
    metronome: Process,
) -> None:
    done = run(metronome, "--rate", "300", "--num-prompts", "300", "--seed", "1", files=FILES)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(
        "loadgen: WARNING: some 174 requests are likely to be in flight at once"
    )
    assert "ulimit -n 1174" in done.stderr
    assert len(np.unique(Truth.fetch(metronome.url).id)) >= 300


def test_client_that_could_not_send_the_load_fails_the_run(metronome: Process) -> None:
    done = run(metronome, "--rate", "2000", "--num-prompts", "600", "--seed", "1", files=70)
    assert done.returncode == 3, done.stderr
    assert "\nload not sent: " in whole(done.stdout)
    assert "client error: first seen at request " in whole(done.stdout)


def test_connections_come_from_the_addresses_that_are_given(metronome: Process) -> None:
    done = run(metronome, "--num-prompts", "20", "--source-address", "127.0.0.5,127.0.0.6")
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     20" in done.stdout


def test_an_address_that_this_machine_has_not_is_refused(metronome: Process) -> None:
    done = run(metronome, "--num-prompts", "20", "--source-address", "192.0.2.1")
    assert done.returncode == 2
    assert done.stderr.startswith("loadgen run: --source-address: 192.0.2.1 cannot be used")

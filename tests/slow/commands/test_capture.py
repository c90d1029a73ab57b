"""`loadgen run --capture` and the replay of what it kept, as a user calls them."""

import re
from pathlib import Path

from loadgen.features import capture
from loadgen.testing.process import started
from tests.helpers.command_line import SHORT, loadgen
from tests.helpers.source import ROOT

TOKENIZER = str(ROOT / "engines" / "sim" / "tokenizer.json")


def test_a_run_is_captured_and_measured_again_from_its_file(tmp_path: Path) -> None:
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "5",
        "--rate",
        "100",
        "--capture",
        "c.jsonl.gz",
        "--full",
        *SHORT,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Captured 5 responses\n" in done.stdout
    assert "Saved: c.jsonl.gz\n" in done.stdout
    kept = capture.load(str(tmp_path / "c.jsonl.gz"))
    assert [response.index for response in kept.responses] == [0, 1, 2, 3, 4]
    with started("loadgen.testing.replay", str(tmp_path / "c.jsonl.gz")) as server:
        flags = [
            "--base-url",
            server.url,
            "--backend",
            "openai-chat",
            "--model",
            kept.model,
            "--tokenizer",
            TOKENIZER,
        ]
        flags += ["--num-prompts", "5", "--rate", "100", "--full", *SHORT]
        again = loadgen("run", *flags, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert " | 5/5 ok | " in again.stdout.splitlines()[-1]
    assert re.search(r"output, counted by usage +20\n", again.stdout)


def test_a_capture_that_cannot_be_written_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    done = loadgen("run", "--engine", "sim", "--capture", "nowhere/c.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "--capture: nowhere/c.jsonl cannot be written" in done.stderr

"""Several targets on the command line: each is named, refused and shown by its URL."""

import json
import socket
from pathlib import Path

from tests.helpers.command_line import SHORT, TOKENIZER, loadgen, served
from tests.helpers.console_lines import report_of, section, unwrapped
from tests.integration.commands.test_bad_input import refused

SHARED = ["--balance", "round-robin"]
FLAGS = [
    "--backend",
    "openai-chat",
    "--tokenizer",
    TOKENIZER,
    "--rate",
    "200",
    "--num-prompts",
    "40",
    *SHORT,
]


def test_two_servers_share_a_run_and_each_has_its_line(tmp_path: Path) -> None:
    with (
        served("--served-model-name", "m") as (one, _),
        served("--served-model-name", "m") as (other, _),
    ):
        flags = [
            "--base-url",
            one,
            "--base-url",
            other,
            *SHARED,
            "--save-result",
            "--result-filename",
            "r.json",
        ]
        done = loadgen("run", *flags, *FLAGS, "--num-warmups", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    own = result["loadgen"]
    assert (own["outcomes"], result["completed"]) == ({"ok": 40}, 40)
    assert [(row["base_url"], row["ok"]) for row in own["targets"]] == [(one, 20), (other, 20)]
    assert own["provenance"]["settings"]["base_url"] == [one, other]
    assert own["provenance"]["engine"]["targets"][1]["base_url"] == other
    lines = section(unwrapped(done.stdout.splitlines()), "Targets; latencies are p50 / p99 in ms")
    assert lines[-1] == "Requests are balanced: round-robin"
    rows = [line.split() for line in lines if line.startswith("http")]
    assert {row[0] for row in rows} == {one, other}
    assert [row[1:4] for row in rows[:2]] == [["20", "20", "0"]] * 2  # latencies follow below
    assert loadgen("report", "r.json", cwd=tmp_path).stdout == report_of(done.stdout)


def test_target_that_is_down_is_refused_by_its_url() -> None:
    with served("--served-model-name", "m") as (one, _), socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{unused.getsockname()[1]}"
        line = refused("run", "--base-url", one, "--base-url", down, *SHARED, *FLAGS)
    assert down in line
    assert one not in line


def test_target_without_the_model_is_refused_by_its_url() -> None:
    with (
        served("--served-model-name", "m") as (one, _),
        served("--served-model-name", "n") as (other, _),
    ):
        both = ["--base-url", one, "--base-url", other, *SHARED]
        line = refused("run", *both, "--model", "m", *FLAGS)
        assert other in line
        assert "'m'" in line
        assert "--model" in refused("run", *both, *FLAGS)


def test_target_given_twice_is_refused() -> None:
    line = refused(
        *("run", "--base-url", "http://127.0.0.1:1", "--base-url", "http://127.0.0.1:1/"),
        *(*SHARED, *FLAGS),
    )
    assert "http://127.0.0.1:1 is given twice" in line


def test_a_balance_of_one_is_refused() -> None:
    assert "--balance" in refused(
        "run", "--base-url", "http://127.0.0.1:1", "--balance", "round-robin", *FLAGS
    )

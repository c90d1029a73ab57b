"""The GitHub Action of docs/ci.md: a valid workflow of valid loadgen commands."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from loadgen.cli import flags, run_settings
from loadgen.config.settings import RunSettings
from tests.helpers.command_line import loadgen
from tests.slow.docs.examples import EXAMPLES

WORKFLOW: dict[Any, Any] = yaml.safe_load((EXAMPLES / "github-action.yml").read_text())
(JOB,) = WORKFLOW["jobs"].values()
STEPS: list[dict[str, Any]] = JOB["steps"]


def commands() -> list[list[str]]:
    """The words of each loadgen command, as a shell hands them over; variables by the workflow's
    `env`.
    """
    found = []
    for step in STEPS:
        line = step.get("run", "").partition(" > ")[0]
        for name, value in WORKFLOW["env"].items():
            line = line.replace(f"${name}", value)
        words = shlex.split(line)
        if words and words[0] == "loadgen":
            found.append(words[1:])
    return found


BY_NAME = {words[0]: words[1:] for words in commands()}


def measured() -> RunSettings:
    """What `loadgen run` is told."""
    _, (settings,) = run_settings.swept(flags.run_settings(BY_NAME["run"]))
    return settings


def test_action_is_a_valid_github_workflow() -> None:
    # YAML 1.1 takes the key `on` for true; GitHub does not
    assert set(WORKFLOW) == {"name", True, "env", "jobs"}
    assert WORKFLOW[True] == ["pull_request"]
    assert {"runs-on", "steps"} <= set(JOB) <= {"runs-on", "steps", "timeout-minutes"}
    for step in STEPS:
        assert ("run" in step) != ("uses" in step), step
        assert set(step) <= {"name", "run", "uses", "with", "if"}, step
        assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v0"))


def test_action_serves_runs_and_compares() -> None:
    assert list(BY_NAME) == ["serve", "run", "compare"]


def test_the_run_is_one_that_can_be_carried_out() -> None:
    settings = measured().checked()
    assert settings.slo is not None
    assert settings.save_result
    assert settings.num_prompts is not None
    assert settings.num_prompts >= 662  # what a p99 needs


def test_the_server_is_one_that_can_be_started(tmp_path: Path) -> None:
    done = loadgen("serve", *BY_NAME["serve"], "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--port 8000" in done.stdout


def test_action_compares_its_measured_result() -> None:
    baseline, new, *others = BY_NAME["compare"]
    assert baseline == "baseline"
    assert new == measured().result_filename
    assert others[::2] == ["--noise", "--fail-if"]  # one start decides nothing without noise

"""The GitHub Action that installs loadgen, and the workflow of docs/ci.md that uses it: linters
find nothing in them, and the commands of the workflow are valid.
"""

import shlex
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.cli import flags, run_settings
from loadgen.config.settings import RunSettings
from loadgen.version import __version__
from tests.helpers.command_line import environment
from tests.helpers.source import ROOT
from tests.slow.docs.examples import EXAMPLES
from tests.slow.packaging.building import called, linted

ACTION = ROOT / "action.yml"
FILE = EXAMPLES / "github-action.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())
(JOB,) = WORKFLOW["jobs"].values()
STEPS: list[dict[str, Any]] = JOB["steps"]
# No hash is known of an Action that has no release, and those of GitHub keep their tags.
PINS = 'rules: {unpinned-uses: {config: {policies: {"*": ref-pin}}}}'


def commands() -> list[list[str]]:
    """The words of each loadgen command, as a shell hands them over; variables by the workflow's
    `env`.
    """
    found = []
    for step in STEPS:
        script = step.get("run", "").replace("\\\n", "").replace("$start", "1")
        for name, value in WORKFLOW["env"].items():
            script = script.replace(f"${name}", value)
        lines = (line.partition(" || ")[0] for line in script.splitlines())
        found += [words[1:] for line in lines if (words := shlex.split(line))[:1] == ["loadgen"]]
    return found


BY_NAME = {words[0]: words[1:] for words in commands()}


def measured() -> RunSettings:
    """What `loadgen run` is told."""
    _, (settings,) = run_settings.swept(flags.run_settings(BY_NAME["run"]))
    return settings


@pytest.mark.parametrize(("schema", "file"), [("actions", ACTION), ("workflows", FILE)])
def test_files_have_the_form_that_github_reads(schema: str, file: Path) -> None:
    linted("check-jsonschema", "--builtin-schema", f"vendor.github-{schema}", str(file))


def test_workflow_has_no_findings() -> None:
    linted("actionlint", "-ignore", 'label "gpu" is unknown', str(FILE))


def test_neither_file_endangers_its_user(tmp_path: Path) -> None:
    config = tmp_path / "zizmor.yml"
    config.write_text(PINS)
    linted("zizmor", "--offline", "--config", str(config), str(ACTION), str(FILE))


def installed(package: Path, folder: Path, extras: str = "") -> Path:
    """Run the steps of the Action as a runner does, with a package in place of its checkout.

    Returns:
        The folder that later steps have in their PATH.
    """
    path = folder / "path"
    variables = {
        "GITHUB_ACTION_PATH": str(package),
        "GITHUB_PATH": str(path),
        "RUNNER_TEMP": str(folder),
    }
    for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]:
        given = {
            name: extras if "inputs.extras" in value else value
            for name, value in step["env"].items()
        }
        subprocess.run(
            [step["shell"], "-e", "-o", "pipefail", "-c", step["run"]],
            env=environment() | variables | given,
            check=True,
            timeout=300,
        )
    return Path(path.read_text().strip())


@pytest.mark.timeout(300)
def test_later_steps_find_the_command_and_keep_their_python(tmp_path: Path) -> None:
    package = tmp_path / "loadgen-1.0-py3-none-any.whl"
    info = "loadgen-1.0.dist-info"
    files = {
        "stand_in.py": "def command(): print('loadgen of the Action')",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: loadgen\nVersion: 1.0\n"
        "Provides-Extra: gguf\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nloadgen = stand_in:command\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(package, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    folder = installed(package, tmp_path, "gguf")
    assert [path.name for path in folder.iterdir()] == ["loadgen"]
    assert called(str(folder / "loadgen")) == "loadgen of the Action\n"


def test_workflow_installs_runs_and_compares() -> None:
    (action,) = [step["uses"] for step in STEPS if "loadgen" in step.get("uses", "")]
    assert action.endswith(f"/loadgen@v{__version__}")
    assert list(BY_NAME) == ["run", "compare"]


def test_the_run_is_one_that_can_be_carried_out() -> None:
    settings = measured().checked()
    assert settings.slo is not None
    assert settings.save_result
    assert settings.num_prompts is not None
    assert settings.num_prompts >= 662  # what a p99 needs


def test_action_compares_its_three_starts() -> None:
    baseline, new, *others = BY_NAME["compare"]
    assert (baseline, f"{new}/1.json") == ("baseline", measured().result_filename)
    assert others[::2] == ["--fail-if"]

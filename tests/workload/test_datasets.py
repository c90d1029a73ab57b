"""A data set is found by its name, built in or from an installed package."""

import subprocess
import sys
import tomllib
from importlib import metadata
from typing import ClassVar

import pytest

from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util import packages
from loadgen.workload import datasets
from tests.helpers.source import ROOT

PROJECT = ROOT / "pyproject.toml"


class Echo:
    """A data set as another package would add it."""

    options: ClassVar = {"volume": "how loud it is", "times_said": "how often"}

    def __init__(self, settings):
        self.settings = settings

    @classmethod
    def from_settings(cls, settings):
        return cls(settings)


@pytest.fixture
def installed(monkeypatch):
    """Pretend that a package has added two data sets, of which one cannot be imported."""
    points = metadata.EntryPoints(
        [
            metadata.EntryPoint("echo", f"{__name__}:Echo", datasets.GROUP),
            metadata.EntryPoint("broken", "no_such_module:Missing", datasets.GROUP),
        ]
    )
    monkeypatch.setattr(packages, "installed", lambda group: points.select(group=group))


def test_the_built_in_names_are_in_one_list():
    assert datasets.GROUP not in tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    for place in datasets.BUILT_IN.values():
        assert hasattr(packages.built_in(place), "from_settings")


def test_a_package_can_add_one(installed):
    settings = RunSettings(dataset_name="echo")
    made = datasets.create(settings)
    assert isinstance(made, Echo)
    assert made.settings is settings


def test_package_reads_its_own_options(installed):
    made = datasets.create(
        RunSettings(dataset_name="echo", dataset_arg=("volume=a=b", "times-said="))
    )
    assert made.settings.dataset_options == {"volume": "a=b", "times_said": ""}


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        (
            "echo",
            ("pitch=3",),
            "unknown option 'pitch' of the data set echo; choose from volume (how loud it is), ",
        ),
        ("random", ("volume=3",), "unknown option 'volume' of the data set random; leave it out"),
        ("echo", ("volume",), "'volume' has no value; write NAME=VALUE"),
        ("echo", ("times-said=1", "times_said=2"), "has an option twice; give each once"),
    ],
)
def test_option_that_the_data_set_does_not_have_is_refused(installed, name, words, message):
    with pytest.raises(BadInput) as refused:
        datasets.create(RunSettings(dataset_name=name, dataset_arg=words))
    assert str(refused.value).startswith(f"--dataset-arg: {message}")


def test_an_unknown_name_is_refused_with_all_that_exist(installed):
    with pytest.raises(BadInput) as refused:
        datasets.create(RunSettings(dataset_name="randon"))
    message = "--dataset-name: unknown data set 'randon'; choose one of: " + ", ".join(
        sorted([*datasets.BUILT_IN, "broken", "echo"])
    )
    assert str(refused.value) == message


def test_trace_format_as_dataset_name_is_refused(installed):
    with pytest.raises(BadInput, match="--dataset-name trace --trace-format burstgpt"):
        datasets.create(RunSettings(dataset_name="burstgpt"))


def test_data_set_that_fails_to_import_is_refused_with_reason(installed):
    with pytest.raises(BadInput) as refused:
        datasets.create(RunSettings(dataset_name="broken"))
    message = (
        "--dataset-name: 'broken' cannot be loaded (No module named 'no_such_module'); "
        "repair the package"
    )
    assert str(refused.value).startswith(message)


def test_built_in_dataset_needs_no_scan_of_packages(monkeypatch):
    def no_scan(group):
        raise AssertionError("scanned")

    monkeypatch.setattr(packages, "installed", no_scan)
    with pytest.raises(BadInput, match="--tokenizer"):
        datasets.create(RunSettings(dataset_name="random"))


@pytest.mark.integration
@pytest.mark.parametrize("module", ["tokenizers", "transformers", "huggingface_hub", "yaml"])
def test_registry_and_presets_import_no_heavy_module(module):
    code = (
        f"import sys, loadgen.workload.datasets, loadgen.config.presets; sys.exit({module!r} "
        "in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"turns": "5"},
            "--turns: has no effect on the data set random; leave it out, or use sharegpt or "
            "multi_turn",
        ),
        ({"think_time": "exp:2"}, "--think-time: has no effect on the data set random"),
        (
            {"dataset_name": "agentic", "dataset_path": "a.json", "think_time": "2"},
            "--think-time: has no effect on the data set agentic; use --max-think-time",
        ),
        ({"prefix_buckets": "4x100"}, "--prefix-buckets: has no effect on the data set random"),
        (
            {"sharegpt_input_len": "1:9"},
            "--sharegpt-input-len: has no effect on the data set random",
        ),
        (
            {"dataset_name": "sharegpt", "dataset_path": "a.json", "sharegpt_input_len": "1:9"},
            "--sharegpt-input-len: has no effect without --dataset-rule benchmark-runner",
        ),
        ({"history": "recorded"}, "--history: has no effect on the data set random"),
        (
            {"time_scale": 3.0},
            "--time-scale: has no effect on the data set random; leave it out, or use trace",
        ),
        (
            {"trace_format": "azure", "dataset_name": "sharegpt"},
            "--trace-format: has no effect on the data set sharegpt",
        ),
        (
            {"turns": "5", "dataset_name": "sharegpt", "dataset_rule": "vllm-0.11"},
            "--dataset-rule: rules do not support sessions",
        ),
    ],
)
def test_options_the_data_set_would_ignore_are_refused(given, message):
    with pytest.raises(BadInput) as refused:
        datasets.create(RunSettings(**given))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", ["random", "prefix_repetition", "multi_turn", "prose"])
def test_token_based_dataset_needs_a_tokenizer(name):
    with pytest.raises(BadInput) as refused:
        datasets.create(RunSettings(dataset_name=name, tokenizer="none"))
    assert refused.value.field == "--tokenizer"
    assert name in refused.value.problem


@pytest.mark.parametrize("given", [{"session_header": "X-A"}, {"session_token": "x-a"}])
def test_flags_of_sessions_are_refused_where_no_data_set_has_any(given):
    settings = RunSettings(dataset_name="sharegpt", dataset_path="s.json", **given)
    with pytest.raises(
        BadInput, match=f"^{flag(next(iter(given)))}: has no effect without sessions"
    ):
        datasets.check_sessions(settings, [settings])
    for sessions in (
        settings.replace(turns="all"),
        RunSettings(dataset_name="multi_turn"),
        RunSettings(dataset_name="own"),
    ):
        datasets.check_sessions(settings, [settings, sessions])


def test_no_header_of_sessions_is_no_flag_of_sessions():
    settings = RunSettings(session_header="none")
    datasets.check_sessions(settings, [settings])

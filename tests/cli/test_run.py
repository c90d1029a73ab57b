"""`loadgen run`: the warning before the first request."""

import pytest

from loadgen.cli.commands.run import burst_warning, burstiness_warning
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings

SERVER = "http://a:8000"


def test_default_burst_is_warned_of():
    warning = burst_warning({"base_url": SERVER}, RunSettings(base_url=SERVER))
    for part in ("1000 requests", "--rate", "--max-concurrency"):
        assert part in warning


@pytest.mark.parametrize(
    "given",
    [
        {"engine": "sim"},
        {"engine": "vllm", "model": "m"},
        {"base_url": SERVER, "request_rate": float("inf")},
        {"base_url": SERVER, "request_rate": 10.0},
        {"base_url": SERVER, "max_concurrency": 8},
        {"base_url": SERVER, "num_prompts": 100},
        {
            "base_url": SERVER,
            "ramp_up_strategy": "linear",
            "ramp_up_start_rps": 1.0,
            "ramp_up_end_rps": 2.0,
        },
        {"base_url": SERVER, "dataset_name": "trace"},
    ],
)
def test_other_runs_are_not_warned_of(given):
    assert burst_warning(given, RunSettings(**given)) is None


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({"burstiness": 2.0}, True),
        ({"burstiness": 2.0, "max_concurrency": 8}, True),
        ({"burstiness": 1.0}, False),
        ({"burstiness": 2.0, "request_rate": 5.0}, False),
        ({"burstiness": 2.0, "rate_profile": "5@5s"}, False),
        ({}, False),
    ],
)
def test_a_burstiness_without_a_rate_is_warned_of(given, warned):
    assert (burstiness_warning(given, [RunSettings(**given)]) is not None) == warned


def test_an_unknown_engine_is_named_before_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["run", "--engine", "nosuch"]) == 2
    assert capsys.readouterr().err.startswith("loadgen run: --engine: unknown name 'nosuch'; ")

"""Workers: how many of them, and what each has to do."""

import os

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner import coordinators
from loadgen.runner.coordinator import OwnLoop
from loadgen.runner.workers import MOST_OF_AUTO, Workers, count
from loadgen.util import machine


@pytest.fixture
def cores(monkeypatch):
    """Sets how many this process may run on."""
    return lambda number: monkeypatch.setattr(machine, "usable_cores", lambda: number)


def test_one_is_the_default():
    assert count(RunSettings()) == 1


@pytest.mark.parametrize(("number", "workers"), [(1, 1), (2, 1), (4, 3), (64, MOST_OF_AUTO)])
def test_auto_leaves_one_core_to_others(cores, number, workers):
    cores(number)
    assert count(RunSettings(workers="auto")) == workers


@pytest.mark.parametrize("settings", [{"max_concurrency": 3}, {"num_prompts": 3}])
def test_auto_takes_no_more_than_have_something_to_do(cores, settings):
    cores(64)
    assert count(RunSettings(workers="auto", **settings)) == 3


def test_auto_lets_one_keep_the_responses(cores):
    cores(64)
    assert count(RunSettings(workers="auto", capture="c.jsonl").checked()) == 1


def test_more_than_cores_is_told_and_done(cores, caplog):
    cores(2)
    assert Workers(count(RunSettings(workers=3))).workers == 3
    assert caplog.messages == [
        "--workers: 3 processes share 2 cores, and wait for each other; ask for fewer, or for auto"
    ]


async def test_the_running_loop_measures_where_it_may_and_one_is_enough():
    async with coordinators.of(RunSettings(), own_loop=True) as measurer:
        assert isinstance(measurer, OwnLoop)
    assert isinstance(coordinators.of(RunSettings()), Workers)
    assert isinstance(coordinators.of(RunSettings(workers=2), own_loop=True), Workers)


@pytest.mark.parametrize("shared", [{"workers": 2}, {"ray": "auto", "base_url": "http://10.0.0.1:8000"}])
def test_several_cannot_write_records_into_a_pipe(tmp_path, shared):
    os.mkfifo(tmp_path / "pipe")
    settings = RunSettings(records=str(tmp_path / "pipe"), **shared)
    with pytest.raises(BadInput, match=r"--records: .*pipe is no regular file"):
        coordinators.of(settings)


def test_one_can(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    coordinators.of(RunSettings(records=str(tmp_path / "pipe")))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"workers": 0}, "--workers"),
        ({"workers": "many"}, "--workers"),
        ({"workers": 1000}, "--workers"),
        ({"workers": 3, "max_concurrency": 2}, "--workers"),
        ({"workers": 2, "capture": "c.jsonl"}, "--capture"),
    ],
)
def test_what_cannot_be_shared_is_refused(settings, field):
    with pytest.raises(BadInput) as refused:
        RunSettings(**settings).checked()
    assert refused.value.field == field

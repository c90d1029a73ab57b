"""The number of workers and the partition of each."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.coordinator import open_participant
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.workers import MAX_AUTO_WORKERS, warn_of_cores, worker_count
from loadgen.util import machine


@pytest.fixture
def cores(monkeypatch):
    """Sets how many this process may run on."""
    return lambda number: monkeypatch.setattr(machine, "usable_cores", lambda: number)


def test_default_is_a_single_worker():
    assert worker_count(RunSettings()) == 1


@pytest.mark.parametrize(("number", "workers"), [(1, 1), (2, 1), (4, 3), (64, MAX_AUTO_WORKERS)])
def test_auto_leaves_one_core_to_others(cores, number, workers):
    cores(number)
    assert worker_count(RunSettings(workers="auto")) == workers


@pytest.mark.parametrize("settings", [{"max_concurrency": 3}, {"num_prompts": 3}])
def test_auto_takes_no_more_than_have_something_to_do(cores, settings):
    cores(64)
    assert worker_count(RunSettings(workers="auto", **settings)) == 3


def test_auto_lets_one_keep_the_responses(cores):
    cores(64)
    assert worker_count(RunSettings(workers="auto", capture="c.jsonl").checked()) == 1


def test_more_than_cores_is_told_and_done(cores, caplog):
    cores(2)
    assert worker_count(RunSettings(workers=3)) == 3
    warn_of_cores(3)
    assert caplog.messages == [
        "--workers: 3 processes share 2 cores, and wait for each other; ask for fewer, or for auto"
    ]


async def test_the_running_loop_measures_where_it_may_and_one_is_enough():
    async with open_participant(RunSettings(), own_loop=True) as participant:
        assert isinstance(participant, LoopRunner)
    assert not isinstance(open_participant(RunSettings()), LoopRunner)
    assert not isinstance(open_participant(RunSettings(workers=2), own_loop=True), LoopRunner)


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
def test_settings_that_workers_cannot_share_are_refused(settings, field):
    with pytest.raises(BadInput) as refused:
        RunSettings(**settings).checked()
    assert refused.value.field == field

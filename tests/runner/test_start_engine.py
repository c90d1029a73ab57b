"""Runs at an engine of their own: the limits that runs of the simulator get."""

from types import SimpleNamespace

import pytest

from loadgen.config.settings import RunSettings
from loadgen.runner.start_engine import settings_for_engine

SERVED = SimpleNamespace(model="sim", base_url="http://127.0.0.1:1", tokenizer=None)


@pytest.mark.parametrize(
    ("asked", "duration", "cap"),
    [
        ({}, 10.0, 256),
        ({"duration": 5.0}, 5.0, 256),
        ({"duration": 5.0, "max_concurrency": 8}, 5.0, 8),
        ({"duration": 5.0, "request_rate": 2.0}, 5.0, None),
        ({"request_rate": 2.0}, 10.0, None),
        ({"num_prompts": 50}, None, None),
        ({"dataset_name": "agentic", "dataset_path": "a.json"}, None, None),
        ({"dataset_name": "trace", "dataset_path": "a.jsonl"}, None, None),
    ],
)
def test_runs_of_the_simulator_have_a_limit(asked, duration, cap):
    settings = settings_for_engine(
        [SERVED], RunSettings(engine="sim", **asked).checked(), simulated=True
    )
    assert (settings.duration, settings.max_concurrency) == (duration, cap)

"""The number of prompts that a data set has, where a run asks for all of them, or for none
twice.
"""

import json

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.datasets.prompt_count import with_known_count
from tests.workload.test_random_words import SIMULATOR

ROWS = [{"prompt": f"word {number}", "output_tokens": 5} for number in range(7)]
TRACE = [{"timestamp": 100 * number, "input_length": 9, "output_length": 3} for number in range(4)]


@pytest.fixture
def counted(tmp_path):
    """Returns the number of prompts of a run with a file of seven rows, or of a trace of four."""

    def count(**changes):
        for name, rows in (("custom", ROWS), ("trace", TRACE)):
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        name = changes.pop("dataset_name", "custom")
        path = (
            None
            if name == "random"
            else str(tmp_path / ("trace.jsonl" if name == "trace" else "custom.jsonl"))
        )
        asked = RunSettings(
            dataset_name=name, dataset_path=path, tokenizer=str(SIMULATOR), **changes
        )
        return with_known_count(asked.checked()).num_prompts

    return count


@pytest.mark.parametrize("name", ["custom", "jsonl", "hf"])
def test_all_prompts_of_a_file(counted, name):
    assert counted(dataset_name=name, num_prompts=-1) == 7


def test_all_prompts_that_meet_a_condition(counted):
    assert counted(dataset_name="hf", num_prompts=-1, hf_where=("prompt=word 3",)) == 1


@pytest.mark.parametrize(("asked", "sent"), [(3, 3), (7, 7), (50, 7), (None, 7)])
def test_none_is_sent_twice_without_oversampling(counted, asked, sent):
    assert counted(num_prompts=asked, no_oversample=True) == sent


def test_other_runs_keep_their_number(counted):
    assert counted(num_prompts=50) == 50
    assert counted() is None


def test_prompts_that_are_made_are_never_too_few(counted):
    assert counted(dataset_name="random", num_prompts=50, no_oversample=True) == 50


@pytest.mark.parametrize(("asked", "sent"), [(-1, 4), (3, 3)])
def test_requests_of_a_trace(counted, asked, sent):
    assert counted(dataset_name="trace", num_prompts=asked) == sent


def test_trace_at_the_rate_of_the_run_has_as_many_as_its_file(counted):
    assert counted(dataset_name="trace", trace_times="ignore", request_rate=5.0) == 4


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"dataset_name": "random", "num_prompts": -1}, "--num-prompts"),
        ({"num_prompts": -2}, "--num-prompts"),
        ({"num_prompts": 0}, "--num-prompts"),
        ({"no_oversample": True, "duration": 5.0, "request_rate": 1.0}, "--no-oversample"),
    ],
)
def test_refused_with_its_flag(counted, changes, flag):
    with pytest.raises(BadInput) as refused:
        counted(**changes)
    assert refused.value.field == flag

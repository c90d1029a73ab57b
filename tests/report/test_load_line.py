"""The load of a run in one line."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.recorder import Recorder
from loadgen.report.load_line import full_text, text_of_settings
from loadgen.workload.arrivals import Schedule
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, result, steady


def load(records, settings=None, schedule=None):
    return full_text(saved_json.result(result(records, settings, schedule=schedule))).partition(
        ","
    )[0]


def test_it_names_the_requests():
    assert load([steady(i) for i in range(3)]) == "3 requests"


def test_run_that_was_cut_short_says_how_many_were_sent():
    recorder = Recorder(0, 5)
    for index in range(3):
        recorder.add(steady(index))
    recorder.add_never_sent(3, 2, Outcome.CANCELLED, "interrupted")
    assert (
        load(recorder.snapshot("interrupted"), schedule=Schedule.burst(5)) == "3 of 5 requests sent"
    )


def test_prepared_requests_of_a_closed_loop_are_no_sessions():
    settings = RunSettings(max_concurrency=2, duration=10.0)
    assert load(measured([steady(0), steady(1)]), settings, Schedule.burst(1000)) == "2 requests"


@pytest.mark.parametrize(
    ("load", "text"),
    [
        ({"concurrency_profile": "4@5s,8@5s"}, "4@5s,8@5s requests in flight"),
        (
            {"concurrency_profile": "1@1s,2@1s,3@1s,0@1s,5@1s"},
            "0 to 5 requests in flight in 5 phases",
        ),
        ({"users": 1, "num_prompts": 5}, "1 user, think time 0s"),
        ({"users": 20, "think_time": "exp:2", "num_prompts": 5}, "20 users, think time exp:2s"),
    ],
)
def test_closed_loops_say_who_sends(load, text):
    assert text_of_settings(RunSettings(**load)) == text


def test_it_ends_with_the_label():
    shown = full_text(saved_json.result(result([steady(0)], RunSettings(label="nightly"))))
    assert shown.endswith(", label nightly.")


@pytest.mark.parametrize(
    ("prompts", "shown"),
    [
        ({"images": 7, "requests": 2}, "3.5 images each"),
        ({"classes": {"a": 3, "b": 1}}, "classes a (3), b (1)"),
        (
            {"classes": {name: ord(name) for name in "abcdef"}},
            "6 classes with 97 to 102 requests each",
        ),
    ],
)
def test_it_has_images_and_classes(prompts, shown):
    data = result([steady(0)], RunSettings())
    data["loadgen"]["provenance"]["prompts"] |= prompts
    assert f", {shown}," in full_text(saved_json.result(data))


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [([51, 64], "10 tokens in (51 to 64) and 3 out"), ([10, 10], "10 tokens in and 3 out")],
)
def test_it_has_the_range_from_which_lengths_were_drawn(drawn, shown):
    data = result([steady(0)], RunSettings())
    data["loadgen"]["provenance"]["prompts"]["input_tokens"] = drawn
    assert f", {shown}" in full_text(saved_json.result(data))

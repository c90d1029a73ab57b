"""Progress: one line that says what is done, how far it is and, while prompts are made, how long that will take."""

import pytest

from loadgen.cli.progress import describe
from loadgen.progress import Progress


@pytest.mark.parametrize(
    ("elapsed_s", "done", "line"),
    [
        (2.0, 1024, "preparing prompts: 1024 of 10240, 0:18 left"),
        (10.0, 5120, "preparing prompts: 5120 of 10240, 0:10 left"),
        (20.0, 10240, "preparing prompts: 10240 of 10240"),
        (1.0, 0, "preparing prompts: 0 of 10240"),
    ],
)
def test_what_is_left_to_prepare_takes_as_long_as_what_was_done(elapsed_s, done, line):
    assert describe(Progress("preparing", elapsed_s, scheduled=10240, ended=done)) == line


def test_of_how_many_is_left_out_where_only_the_data_set_knows():
    assert describe(Progress("preparing", 2.0, ended=1024)) == "preparing prompts: 1024"


def test_a_run_is_described_by_its_requests():
    running = Progress("running", 5.0, scheduled=10, in_flight=3, ended=4, ok=3, output_tokens=70)
    assert describe(running) == "running 5 s: 4 of 10 ended, 3 in flight, 1 failed, 70 tokens"
    assert describe(Progress("connecting")) == "connecting"


def test_who_is_waited_for_is_said_with_the_reason():
    waiting = Progress("waiting", 3.2, note="http://a:8000/v1/models answers 503")
    assert describe(waiting) == "waiting for the server 3 s: http://a:8000/v1/models answers 503"

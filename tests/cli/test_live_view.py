"""The lines of the live view: the progress of a run, and the time left for preparing prompts."""

import pytest
from msgspec import structs

from loadgen.cli.live.progress_line import Pace, describe
from loadgen.cli.live.view import LineView
from loadgen.metrics.progress import DONE, Progress
from tests.helpers.live_text import SETTINGS, running


@pytest.mark.parametrize(
    ("elapsed_s", "done", "line"),
    [
        (2.0, 1024, "preparing prompts: 1024 of 10240, 0:18 left"),
        (10.0, 5120, "preparing prompts: 5120 of 10240, 0:10 left"),
        (20.0, 10240, "preparing prompts: 10240 of 10240"),
        (1.0, 0, "preparing prompts: 0 of 10240"),
    ],
)
def test_preparation_time_left_follows_the_time_taken(elapsed_s, done, line):
    assert describe(Progress("preparing", elapsed_s, scheduled=10240, ended=done)) == line


def test_total_is_left_out_if_only_the_data_set_knows_it():
    assert describe(Progress("preparing", 2.0, ended=1024)) == "preparing prompts: 1024"


def test_a_run_is_described_by_its_requests():
    running = Progress(
        "running",
        5.0,
        scheduled=10,
        in_flight=3,
        ended=4,
        ok=3,
        output_tokens=70,
        failures={"refused": 1},
    )
    assert describe(running) == "running 5 s: 3 of 10 answered, 3 in flight, 1 failed, 70 tokens"
    cut_short = structs.replace(
        running, in_flight=0, ended=7, never_sent=2, failures={"refused": 1, "cancelled": 5}
    )
    assert describe(cut_short).endswith(
        "3 of 10 answered, 0 in flight, 1 failed, 70 tokens, 3 cut off, 2 never sent"
    )
    assert describe(Progress("connecting")) == "connecting"


def test_a_silent_stream_is_named_in_the_line():
    line = describe(Progress("running", 90.0, in_flight=1, silent={17: 12.4}))
    assert line.endswith(", 1 silent: request 17, last token at 12 s")


def test_who_is_waited_for_is_said_with_the_reason():
    waiting = Progress("waiting", 3.2, note="http://a:8000/v1/models answers 503")
    assert describe(waiting) == "waiting for the server 3 s: http://a:8000/v1/models answers 503"


def test_a_line_says_what_goes_by_now_and_how_late_first_tokens_come():
    assert describe(running(10.0), Pace(100.2, 100.2, 98.0, 1260.4)) == (
        "running 10 s: 900 of 6000 answered, 100 in flight, 0 failed, 9000 tokens; "
        "now 100.2 req/s, 1260 tokens/s, TTFT p99 so far 41.7 ms"
    )


def test_there_is_a_line_when_a_phase_begins_and_every_two_seconds(capsys):
    now_s = 0.0
    lines = LineView(SETTINGS, clock=lambda: now_s)
    for quarter in range(41):
        now_s = quarter / 4
        lines.show(running(now_s, "running" if quarter < 40 else "draining"))
    said = [line.split(":")[1].strip() for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "running",
        "running 2 s",
        "running 4 s",
        "running 6 s",
        "running 8 s",
        "draining 10 s",
    ]


def test_last_line_is_of_the_whole_run(capsys):
    lines = LineView(SETTINGS, clock=lambda: 0.0)
    lines.show(running(60.5))
    lines.show(running(61.0, DONE))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "loadgen: done 61 s: 6000 of 6000 answered, 0 in flight, 0 failed, 60000 tokens"

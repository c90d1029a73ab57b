"""Progress of the participants adds up to that of the whole run."""

import numpy as np

from loadgen.core.histogram import Histogram
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import PHASES, Progress

MS = 1_000_000


def latencies(*ms):
    histogram = Histogram()
    histogram.record_many(np.array(ms, dtype=np.int64) * MS)
    return Sketch.of(histogram)


A = Progress(
    "running",
    2.0,
    10,
    3,
    4,
    3,
    100,
    sent=6,
    never_sent=1,
    waiting=2,
    cap=4,
    sending_s=9.0,
    counted_tokens=50,
    streamed_tokens=140,
    failures={"refused": 1},
    busy_share=0.1,
    oldest_s=1.5,
    ttft=latencies(10, 20),
)
B = Progress(
    "draining",
    2.5,
    10,
    1,
    9,
    8,
    200,
    sent=10,
    never_sent=2,
    cap=3,
    sending_s=8.0,
    counted_tokens=100,
    streamed_tokens=205,
    failures={"refused": 2, "status(503)": 1},
    busy_share=0.4,
    ttft=latencies(400),
)


def test_what_has_ended_is_ok_failed_or_cut_off():
    outcomes = {"refused": 2, "cancelled": 9}  # of which 4 were never sent, and 3 never due
    progress = Progress("draining", ended=12, ok=5, never_due=3, never_sent=4, failures=outcomes)
    assert (progress.ok, progress.failed, progress.cut_off) == (5, 5, 2)
    assert progress.ok + progress.failed + progress.cut_off == progress.ended


def test_progress_sums_counts_and_takes_the_extremes():
    assert Progress.together([A, B]) == Progress(
        "running",
        2.5,
        20,
        4,
        13,
        11,
        300,
        sent=16,
        never_sent=3,
        waiting=2,
        cap=7,
        sending_s=9.0,
        counted_tokens=150,
        streamed_tokens=345,
        failures={"refused": 3, "status(503)": 1},
        busy_share=0.4,
        oldest_s=1.5,
        ttft=latencies(10, 20, 400),
    )
    assert Progress.together([Progress(phase) for phase in PHASES]).phase == PHASES[0]


def test_value_unknown_to_a_participant_is_unknown_in_total():
    together = Progress.together([A, Progress("running", 2.0)])
    assert together.cap is None
    assert together.sending_s is None


def test_due_requests_have_ended_are_in_flight_or_wait():
    assert A.due == 9


def test_counted_tokens_are_scaled_by_ended_requests():
    assert A.tokens_per_counted == 2
    assert Progress("running").tokens_per_counted == 1


def test_never_due_requests_are_not_due() -> None:
    assert Progress("running", in_flight=2, ended=10, never_due=3).due == 9


def test_requests_are_counted_once_the_clock_has_started() -> None:
    begun = [
        phase for phase in ("starting", "waiting", "preparing", *PHASES) if Progress(phase).begun
    ]
    assert begun == ["running", "draining", "done"]

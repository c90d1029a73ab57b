"""Sees what a person would: the progress of a run at a moment, and the live view of it as text."""

import numpy as np

from loadgen.cli.live.frame import frame
from loadgen.cli.live.history import History
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress

SETTINGS = RunSettings(base_url="http://127.0.0.1:8000", model="qwen3-8b", request_rate=100)


def sketch(*ms: float) -> Sketch:
    """The distribution of so many milliseconds."""
    histogram = Histogram()
    histogram.record_many(np.array([round(one * 1e6) for one in ms], dtype=np.int64))
    return Sketch.of(histogram)


QUIET = {"lag": sketch(*[0.02] * 99, 0.1), "loop_stall": sketch(*[0.01] * 2000)}
FAST = {
    "ttft": sketch(*[40] * 99, 120),
    "icl": sketch(*[10] * 990, *[15] * 10),
    "e2el": sketch(*[1300] * 100),
}


def running(elapsed_s: float, phase: str = "running", **differs: object) -> Progress:
    """100 requests a second of 10 tokens each, that take a second; of one minute."""
    due = round(min(elapsed_s, 60.0) * 100)
    ended = max(0, round((elapsed_s - 1) * 100))
    usual = {
        "scheduled": 6000,
        "in_flight": due - ended,
        "sent": due,
        "ended": ended,
        "ok": ended,
        "output_tokens": 10 * ended,
        "counted_tokens": 10 * ended,
        "streamed_tokens": 10 * ended + 5 * (due - ended),
        "sending_s": 60.0,
        "oldest_s": 1.0 if due > ended else 0.0,
        "busy_share": 0.12,
        **QUIET,
        **FAST,
    }
    return Progress(phase, elapsed_s, **usual | differs)  # type: ignore[arg-type]


def seen(
    *moments: Progress,
    settings: RunSettings = SETTINGS,
    width: int = 80,
    height: int = 24,
    ascii_only: bool = False,
) -> list[str]:
    """The lines of the view at the last of these moments, without the blanks at their ends."""
    history = History(settings)
    for moment in moments:
        history.add(moment)
    lines = frame(settings, moments[-1], history, width, height, ascii_only=ascii_only)
    return [line.plain.rstrip() for line in lines]


def row(lines: list[str], label: str) -> str:
    """The line with this label, without it and with single blanks."""
    (found,) = [line for line in lines if line.startswith(label)]
    return " ".join(found.removeprefix(label).split())

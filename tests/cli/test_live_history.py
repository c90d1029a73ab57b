"""History: rates over the last seconds of the current run."""

import pytest

from loadgen.cli.live.history import History
from loadgen.cli.live.progress_line import Pace
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import Progress


def pace(*moments: Progress) -> Pace | None:
    history = History(RunSettings())
    for moment in moments:
        history.add(moment)
    return history.now()


def test_a_run_of_which_no_time_has_gone_by_has_none() -> None:
    assert pace() is pace(Progress("connecting")) is pace(Progress("running", 0.0)) is None


def test_early_pace_is_that_of_the_whole_run() -> None:
    assert pace(Progress("running", 2.0, in_flight=7, ended=3, sent=10)) == Pace(5.0, 5.0, 1.5, 0.0)


def test_later_it_is_that_of_the_last_seconds() -> None:
    moments = [Progress("running", second / 4, ended=100 + second) for second in range(1, 100)]
    found = pace(*moments)
    assert found is not None
    assert found.ended == pytest.approx(4.0)


def test_where_little_was_told_it_reaches_back_to_what_was() -> None:
    assert pace(
        Progress("running", 1.0, ended=10, sent=10), Progress("running", 16.0, ended=40, sent=40)
    ) == Pace(2.0, 2.0, 2.0, 0.0)


def test_pace_excludes_preparation() -> None:
    history = History(RunSettings())
    history.add(Progress("preparing", 8.0, scheduled=6000, ended=5000))
    history.add(Progress("running", 1.0, ended=3, sent=3))
    assert history.now() == history.so_far() == Pace(3.0, 3.0, 3.0, 0.0)

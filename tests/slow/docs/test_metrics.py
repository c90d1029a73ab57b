"""The page of metrics: its pictures and tables are computed by loadgen from the streams shown."""

import pytest

from tests.helpers.documents import cells_of, found_between
from tests.slow.docs import metrics
from tests.slow.docs.pictures import (
    EVENTS,
    FOLDER,
    PICTURES,
    SENT,
    closed_loop,
    open_loop,
    percentile_ms,
)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_script_draws(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text() == str(PICTURES[name]())


@pytest.mark.parametrize("name", PICTURES)
def test_the_page_shows_it(name: str) -> None:
    assert f"](pictures/{name}.svg)" in metrics.PAGE.read_text()


@pytest.mark.parametrize(
    ("begin", "made"), [(metrics.OF_ONE, metrics.of_one), (metrics.OF_STREAMS, metrics.of_streams)]
)
def test_a_table_is_what_the_recorder_makes_of_the_stream(begin: str, made) -> None:
    assert found_between(metrics.PAGE, begin, metrics.END).strip() == made()


def test_the_brackets_of_the_picture_are_the_metrics_of_the_request() -> None:
    found = dict(cells_of(metrics.of_one()))
    first, answer, last = EVENTS[0].ms, EVENTS[2].ms, EVENTS[-1].ms
    assert found["TTFT from due, from sent"] == f"{first:g}, {first - SENT:g}"
    assert found["TTFO from due, from sent"] == f"{answer:g}, {answer - SENT:g}"
    assert found["E2EL from due, from sent"] == f"{last:g}, {last - SENT:g}"
    assert found["TPOT"] == f"{(last - first) / 6:g}"


def test_the_closed_loop_omits_what_the_open_one_sees() -> None:
    slow = [sum(end - start > 0.1 for start, end in loop) for loop in (open_loop(), closed_loop())]
    assert slow == [10, 1]
    assert percentile_ms(open_loop(), 90) > 30 * percentile_ms(closed_loop(), 90)

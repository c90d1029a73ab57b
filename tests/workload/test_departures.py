"""Which users leave is drawn by the seed and the number of the request alone."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.workload.draws import Departures

SHARE = RunSettings(disconnect="20%@tokens=10", seed=7)


def departures(settings: RunSettings) -> Departures:
    found = Departures.from_settings(settings)
    assert found is not None
    return found


def drawn(settings: RunSettings, count: int = 10_000) -> list[int]:
    return [index for index in range(count) if departures(settings).drawn(index)]


def test_nobody_leaves_without_the_flag() -> None:
    assert Departures.from_settings(RunSettings()) is None


def test_the_share_leaves_within_the_scatter_of_a_draw() -> None:
    assert abs(len(drawn(SHARE)) - 2000) < 4 * (10_000 * 0.2 * 0.8) ** 0.5


def test_all_leave_at_100_percent() -> None:
    assert drawn(SHARE.replace(disconnect="100%@tokens=1"), 100) == list(range(100))


def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    assert drawn(SHARE) == drawn(SHARE.replace(disconnect="20%@after=1s"))
    assert drawn(SHARE) != drawn(SHARE.replace(seed=8))
    assert drawn(SHARE) == drawn(SHARE.replace(seed=8, seed_arrivals=7))


def test_a_larger_share_includes_those_of_a_smaller_one() -> None:
    assert set(drawn(SHARE.replace(disconnect="5%@tokens=10"))) < set(drawn(SHARE))


@pytest.mark.parametrize(
    ("text", "marks"), [("100%@tokens=10", (10, -1)), ("100%@after=200ms", (0, 200_000_000)), ("100%@after=0", (0, 0))]
)
def test_a_drawn_request_says_when_its_user_leaves(text: str, marks: tuple[int, int]) -> None:
    record = Record(3)
    departures(SHARE.replace(disconnect=text)).mark(record)
    assert (record.disconnect_tokens, record.disconnect_ns) == marks


def test_a_request_that_was_not_drawn_stays_as_it_is() -> None:
    record = Record(next(index for index in range(100) if index not in drawn(SHARE, 100)))
    departures(SHARE).mark(record)
    assert (record.disconnect_tokens, record.disconnect_ns) == (0, -1)

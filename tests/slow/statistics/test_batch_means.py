"""Coverage of intervals by batch means, on simulated servers with continuous batching."""

from itertools import product

import pytest

from tests.helpers.thinning import every_nth
from tests.slow.statistics.batched_runs import (
    DRIFTING,
    METRICS,
    SERVERS,
    Server,
    intervals,
    share_that_differs,
)

# One pair in twenty is promised. Requests that share steps with each other are no independent ones,
# and of five parts of a run that is busy some depend on each other.
MOST = {True: 0.16, False: 0.12}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("server", "other_times"),
    every_nth(
        [
            pytest.param(server, other, id=f"{server.name}-{('same', 'other')[other]}")
            for server, other in product(SERVERS, (False, True))
        ],
        step=3,
    ),
)
def test_equal_runs_rarely_differ(server: Server, name: str, other_times: bool) -> None:
    is_busy = server.rate > 20
    assert share_that_differs(server, name, other_times=other_times) <= MOST[is_busy]


@pytest.mark.parametrize("server", SERVERS[:3], ids=lambda server: server.name)
def test_five_percent_are_seen_at_the_same_times(server: Server) -> None:
    found = intervals(server, "tpot_p50", other_times=False, factor=1.05, pairs=50)
    shown = [each.low > 0 for each in found]
    assert len(shown) == 50
    assert sum(shown) >= 45


def test_drift_as_slow_as_the_run_is_not_seen() -> None:
    """So the word is of these runs, and no gate depends on it."""
    assert share_that_differs(DRIFTING, "tpot_mean", other_times=False) > 0.2

"""What the accuracy tests share: the table they fill."""

from collections.abc import Callable

import pytest

from bench.accuracy.table import KEY, Row, Table


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Add a row to the table, then fail if its bound was missed: row(load, measured, bound, met,
    disturbance="").

    The test's column is its module's first line up to the colon.
    """
    table = request.config.stash.setdefault(KEY, Table())
    test = (request.module.__doc__ or request.module.__name__).partition(":")[0]

    def add(load: str, measured: str, bound: str, met: bool, disturbance: str = "") -> None:
        table.add(Row(test, load, measured, bound, bool(met), disturbance))

    return add

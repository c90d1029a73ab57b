"""The rows of requests that have ended: all are kept, as numpy reads them."""

import numpy as np

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.request_rows import RequestRows
from loadgen.metrics.snapshot import ROW, ROW_COLUMNS


def test_rows_are_kept_whatever_their_number() -> None:
    rows, record = RequestRows(1000, from_due=True), Record()
    record.outcome = Outcome.CANCELLED
    count = 20_000  # more than two blocks
    for index in range(count):
        record.index, record.sent, record.closed = index, 2000 + index, 3000 + index
        rows.add(record)
    columns = np.frombuffer(bytes(rows), dtype=list(ROW_COLUMNS))
    assert columns.itemsize == ROW.size
    assert columns["index"].tolist() == list(range(count))
    assert columns["sent"].tolist() == list(range(1000, 1000 + count))
    assert columns["closed"].tolist() == list(range(2000, 2000 + count))

"""The latencies of one request, read from its record."""

import numpy as np

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.arrays import Floats
from loadgen.util.number_format import to_ms


def latency_ms(record: Record, metric: str, settings: RunSettings) -> float | None:
    """Return a latency of a request in ms; None if it has none.

    Args:
        record: The request.
        metric: ttft, ttfo, tpot or e2el.
        settings: The settings of the run; `latency_from` says whether latencies start when a request is due or sent.
    """
    if metric == "tpot":
        return to_ms(record.tpot_ns)
    start = record.due if settings.latency_from == "due" else record.sent
    ended = {"ttft": record.first_token, "ttfo": record.first_answer, "e2el": record.last_token}[metric]
    return to_ms(ended - start) if ended else None


def gaps_ms(record: Record, metric: str) -> tuple[Floats, Floats]:
    """Return the gaps of a request in ms and how often each occurs; both are empty if the request failed.

    For icl these are the gaps between events with tokens. For itl they are the gaps between tokens: the gap before an
    event of k tokens counts as k gaps of a k-th of it.
    """
    stamps = np.frombuffer(record.marks, dtype=np.int64)
    if record.outcome is not Outcome.OK or len(stamps) < 2:
        return np.empty(0), np.empty(0)
    if metric == "icl" or record.token_counts is None:
        return np.diff(stamps) / 1e6, np.ones(len(stamps) - 1)
    tokens = np.array(record.token_counts)
    bearing = np.append([0], 1 + np.flatnonzero(tokens[1:]))
    count = tokens[bearing[1:]]
    return np.diff(stamps[bearing]) // count / 1e6, count.astype(float)

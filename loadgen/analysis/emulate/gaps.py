"""Gaps: the times from one event of a stream to the next, of all requests together."""

import numpy as np

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.recorded_run import Bools, Run
from loadgen.util.arrays import Int64s


def gaps(run: Run, tokens: bytes, marks: bytes, of: Bools, imputed: bool = False) -> Distribution:
    """The gap before each event that a tool takes for a token, but for the first of its request; ns.

    Args:
        run: The run.
        tokens: The selection of those events.
        marks: The selection of events that a gap may begin with; holds `tokens`.
        of: Which requests count.
        imputed: Whether an event of k tokens is preceded by k gaps of a k-th each, as loadgen's ITL has it.
    """
    brings = run.brings if imputed else None
    if brings is not None:
        return _imputed(run, tokens, of, brings)
    chosen = run.chosen(marks)
    before = np.diff(chosen.at, prepend=0)
    is_token = np.frombuffer(tokens, dtype=np.bool_)[run.says[chosen.index]]
    positions = np.flatnonzero(is_token)
    bounds = np.searchsorted(positions, chosen.bounds)
    counts = is_token & np.repeat(of, chosen.count)
    counts[positions[bounds[:-1][np.diff(bounds) > 0]]] = False
    return Distribution(before[counts].astype(np.float64))


def _imputed(run: Run, tokens: bytes, of: Bools, brings: Int64s) -> Distribution:
    """As `Record.fold` does: an event that brought no token ends no gap, and begins one only as the first."""
    chosen = run.chosen(tokens)
    k = brings[chosen.index]
    is_first = np.zeros(len(k), dtype=bool)
    is_first[chosen.bounds[:-1][chosen.count > 0]] = True
    kept = np.flatnonzero((k > 0) | is_first)
    gap, counts = np.diff(chosen.at[kept], prepend=0), np.repeat(of, chosen.count)[kept] & ~is_first[kept]
    k = k[kept]
    return Distribution((gap[counts] // k[counts]).astype(np.float64), k[counts].astype(np.float64))

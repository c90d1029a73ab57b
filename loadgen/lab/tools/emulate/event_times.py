"""Times between the events of streams, and the peaks of tokens and requests per second."""

import numpy as np

from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.recorded_run import Bools, RecordedRun, SelectedEvents
from loadgen.metrics.snapshot import BIN_NS
from loadgen.metrics.throughput import best_second
from loadgen.util.arrays import Floats, Int64s
from loadgen.util.clock import NS_PER_S


def gaps(
    run: RecordedRun, tokens: bytes, marks: bytes, included: Bools, imputed: bool = False
) -> Distribution:
    """Return the gap before each event that a tool takes for a token, except the first of its
    request; ns.

    Args:
        run: The run.
        tokens: The selection of those events.
        marks: The selection of events that a gap may begin with; includes `tokens`.
        included: The requests that count, shape (requests,).
        imputed: Whether an event of k tokens has k gaps of a k-th each before it, as in loadgen's
            ITL.
    """
    event_tokens = run.event_tokens if imputed else None
    if event_tokens is not None:
        # As `Record.fold` does: an event without tokens ends no gap, and begins one only as the
        # first.
        selected = run.select(tokens)
        k = event_tokens[selected.index]
        is_first = np.zeros(len(k), dtype=bool)
        is_first[selected.bounds[:-1][selected.count > 0]] = True
        kept = np.flatnonzero((k > 0) | is_first)
        gap = np.diff(selected.at[kept], prepend=0)
        counts = np.repeat(included, selected.count)[kept] & ~is_first[kept]
        k = k[kept]
        return Distribution(
            (gap[counts] // k[counts]).astype(np.float64), k[counts].astype(np.float64)
        )
    selected = run.select(marks)
    before = np.diff(selected.at, prepend=0)
    is_token = np.frombuffer(tokens, dtype=np.bool_)[run.flags[selected.index]]
    positions = np.flatnonzero(is_token)
    bounds = np.searchsorted(positions, selected.bounds)
    counts = is_token & np.repeat(included, selected.count)
    counts[positions[bounds[:-1][np.diff(bounds) > 0]]] = False
    return Distribution(before[counts].astype(np.float64))


def spread_tokens(run: RecordedRun, tokens: bytes, included: Bools) -> Int64s:
    """Return when each token came, ns, if those of an event came evenly after the event before it.

    Args:
        run: The run.
        tokens: The selection of events that bear tokens; the first of a request counts as one.
        included: The requests that count, shape (requests,).
    """
    selected = run.select(tokens)
    event_tokens = run.event_tokens
    k = (
        np.ones(len(selected.at), dtype=np.int64)
        if event_tokens is None
        else event_tokens[selected.index].copy()
    )
    k[selected.bounds[:-1][selected.count > 0]] = 1
    kept = np.flatnonzero((k > 0) & np.repeat(included, selected.count))
    at = selected.at[kept]
    k = k[kept]
    before = np.diff(at, prepend=0)
    which = np.repeat(np.arange(len(at)), k)
    # Tokens of the same event that come after this one.
    later = np.repeat(np.cumsum(k), k) - np.arange(len(which)) - 1
    times: Int64s = at[which] - before[which] * later // k[which]
    return times


def busiest_whole_second(at: Int64s, begin: int, weights: Int64s | None = None) -> float:
    """Return the largest sum of weights in any whole second after `begin`.

    Args:
        at: Times, ns.
        begin: Time, ns.
        weights: The weights of the times; None: 1 each.
    """
    return float(np.bincount((at - begin) // NS_PER_S, weights).max(initial=0))


def max_sharing_a_second(starts: Int64s, ends: Int64s) -> int:
    """Return the maximum number of intervals that touch one whole second after the first start;
    times in ns.
    """
    if not len(starts):
        return 0
    begin = starts.min()
    first = (starts - begin) // NS_PER_S
    last = (ends - begin) // NS_PER_S
    steps = np.bincount(first, minlength=int(last.max()) + 2)
    np.subtract.at(steps, last + 1, 1)
    return int(np.cumsum(steps).max())


def busiest_sliding_second(at: Int64s, start_ns: int, weights: Int64s | Floats | None) -> int:
    """Return the largest sum of weights, None: 1 each, in any second, to 10 ms, as loadgen's
    peak.
    """
    if not len(at):
        return 0
    sums = np.bincount(np.maximum(at - start_ns, 0) // BIN_NS, weights)
    return best_second(sums.astype(np.int64))


def tokens_per_event(run: RecordedRun, selected: SelectedEvents, included: Bools) -> Int64s:
    """Distribute the tokens that the server confirmed over the selected events of the requests
    that count.
    """
    is_included = np.repeat(included, selected.count)
    event_tokens = run.event_tokens
    tokens = (
        np.ones(int(is_included.sum()), dtype=np.int64)
        if event_tokens is None
        else event_tokens[selected.index[is_included]]
    )
    if not len(tokens):
        return tokens
    count = selected.count[included]
    ends = np.cumsum(count)
    so_far = np.cumsum(tokens)
    so_far -= np.repeat(np.concatenate(([0], so_far))[ends - count], count)
    total = np.maximum(so_far[ends[count > 0] - 1], 1)
    confirmed = (
        np.repeat(run.tokens[included], count) * so_far // np.repeat(total, count[count > 0])
    )
    before = np.concatenate(([0], confirmed[:-1]))
    before[(ends - count)[count > 0]] = 0
    distributed: Int64s = confirmed - before
    return distributed

"""Windows: the most tokens in a second, and the most requests at once, in whole seconds as tools count them."""

import numpy as np

from loadgen.analysis.emulate.recorded_run import Bools, Chosen, Run
from loadgen.metrics.snapshot import BIN_NS
from loadgen.metrics.throughput import best_second
from loadgen.util.arrays import Floats, Int64s

SECOND_NS = 1_000_000_000


def busiest_second(at: Int64s, begin: int, weights: Int64s | None = None) -> float:
    """The most in any whole second after `begin`; times in ns, `weights` one each where None."""
    return float(np.bincount((at - begin) // SECOND_NS, weights).max(initial=0))


def most_touching(starts: Int64s, ends: Int64s) -> int:
    """The most intervals that touch one whole second after the first start; ns."""
    if not len(starts):
        return 0
    begin = starts.min()
    first, last = (starts - begin) // SECOND_NS, (ends - begin) // SECOND_NS
    steps = np.bincount(first, minlength=int(last.max()) + 2)
    np.subtract.at(steps, last + 1, 1)
    return int(np.cumsum(steps).max())


def sliding_second(at: Int64s, start_ns: int, weights: Int64s | Floats) -> int:
    """The most in any second, to the hundredth, as loadgen counts its peak."""
    if not len(at):
        return 0
    sums = np.bincount(np.maximum(at - start_ns, 0) // BIN_NS, weights)
    return best_second(sums.astype(np.int64))


def spread(run: Run, chosen: Chosen, of: Bools) -> Int64s:
    """How many of the tokens that the server confirmed came with each chosen event of the requests that count."""
    wanted = np.repeat(of, chosen.count)
    brings = run.brings
    each = np.ones(int(wanted.sum()), dtype=np.int64) if brings is None else brings[chosen.index[wanted]]
    if not len(each):
        return each
    count = chosen.count[of]
    ends = np.cumsum(count)
    so_far = np.cumsum(each)
    so_far -= np.repeat(np.concatenate(([0], so_far))[ends - count], count)
    whole = np.maximum(so_far[ends[count > 0] - 1], 1)
    given = np.repeat(run.tokens[of], count) * so_far // np.repeat(whole, count[count > 0])
    before = np.concatenate(([0], given[:-1]))
    before[(ends - count)[count > 0]] = 0
    spread_out: Int64s = given - before
    return spread_out

"""Blocks: what a run might have shown as well, by drawing blocks of its requests again and again.

Requests that shared the server share their fate, so a run tells less than as many independent ones would. So it is not
single requests that are drawn but blocks of them, which follow each other (Kuensch, Ann. Stat. 17, 1989), from the run
taken as a circle (Politis and Romano, in: Exploring the Limits of Bootstrap, 1992).
"""

import math

import numpy as np

from loadgen.util.arrays import Floats

RESAMPLES = 400
FEWEST = 5  # of a run: what fewer differ by says too little


def length(count: int, in_flight: float) -> int:
    """How long blocks must be for what requests do to each other: twice as long as there are requests in flight, and no
    shorter than the cube root of the run.

    Args:
        count: Requests of the run.
        in_flight: How many are served at once.
    """
    return min(count, math.ceil(max(2 * in_flight, math.cbrt(count))))


def correlated(series: Floats) -> float:
    """How long blocks must be by the correlations of a series; 1 where there are none, or they cancel.

    As Politis and White have it (Econom. Rev. 23, 2004), with the correction of Patton, Politis and White (Econom.
    Rev. 28, 2009), for blocks of a circle.

    Args:
        series: A value for each request, in order; NaN where there is none.
    """
    count = len(series)
    left = np.nan_to_num(series - np.nanmean(series)) if not np.isnan(series).all() else np.zeros(count)
    if count < 4 or not left.any():
        return 1.0
    few, most = max(5, round(math.log10(count))), math.ceil(min(3 * math.sqrt(count), count / 3))
    reach = min(math.ceil(math.sqrt(count)) + few, count - 1)
    spectrum = np.abs(np.fft.rfft(left, 2 * count)) ** 2
    covariance = np.fft.irfft(spectrum)[: reach + 1] / count
    # The lag after which so few in a row are not to be told from none.
    told = np.flatnonzero(np.abs(covariance[1:]) > 2 * math.sqrt(math.log10(count) / count) * covariance[0]) + 1
    gaps = np.diff(np.concatenate(([0], told, [reach + few + 1])))
    last = int(np.concatenate(([0], told))[np.argmax(gaps > few)])
    lags = np.arange(1, min(2 * max(last, 1), reach) + 1)
    window = np.minimum(1.0, 2 * (1 - lags / lags[-1])) * covariance[lags]
    bend, level = 2 * float(window @ lags), float(covariance[0] + 2 * window.sum())
    if level <= covariance[0]:  # shorter blocks overstate what such a series varies by, if anything
        return 1.0
    return min(float(most), max(1.0, math.cbrt(1.5 * bend**2 / level**2 * count)))


def long_enough(count: int, in_flight: float, *series: Floats) -> int:
    """How long blocks must be for what requests do to each other, and for what they turn out to have in common.

    Twice as long as correlations ask, which would have the mean of the squared error least, not the error of too little
    variance: of simulated queues that are alike fewer are told apart.

    Args:
        count: Requests of the run.
        in_flight: How many are served at once.
        series: Values of each request, in order; NaN where there is none.
    """
    return math.ceil(max([length(count, in_flight), *(2 * correlated(each) for each in series)]))


def tell(count: int, length: int) -> bool:
    """Whether so many requests are blocks enough of this length to tell what they differ by."""
    return count >= FEWEST * length


def ratios(part: Floats, of: Floats, length: int, seed: int = 0) -> Floats:
    """The sum of `part` by that of `of`, in so many runs drawn anew.

    The same number of requests, length and seed draw the same blocks: so what two runs show of the same requests is
    resampled together.

    Args:
        part: Of each request, shape (n,).
        of: Likewise.
        length: Of a block, in requests.
        seed: Of what is drawn.

    Returns:
        Shape (RESAMPLES,); NaN where the sum of `of` is 0.
    """
    count = len(part)
    assert 0 < length <= count, "a block goes round the circle once at most"
    drawn = np.random.default_rng(seed).integers(count, size=(RESAMPLES, math.ceil(count / length)))
    last = count - (drawn.shape[1] - 1) * length  # the last block is cut: a run drawn anew is as long as the run
    parts, counts = (
        _sums(values, length)[drawn[:, :-1]].sum(axis=1) + _sums(values, last)[drawn[:, -1]] for values in (part, of)
    )
    found: Floats = np.divide(parts, counts, out=np.full(RESAMPLES, math.nan), where=counts > 0)
    return found


def standard_error(drawn: Floats, count: float, length: int) -> tuple[float, float]:
    """The standard error of a value, by what it was in runs drawn anew, and its degrees of freedom.

    Runs that are drawn from b blocks vary by (b - 1) / b of what runs do, as with any sample of b values, and b blocks
    tell this with b - 1 degrees of freedom (Student's).

    Args:
        drawn: The values, shape (RESAMPLES,).
        count: Requests of the run.
        length: Of a block, in requests; less than `count`.
    """
    number = count / length
    return float(drawn.std(ddof=1)) * math.sqrt(number / (number - 1)), number - 1


def _sums(values: Floats, length: int) -> Floats:
    """The sum of the block that begins with each request."""
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((values, values[: length - 1])), dtype=float)))
    found: Floats = sums[length:] - sums[:-length]
    return found

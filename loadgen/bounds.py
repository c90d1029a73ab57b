"""Bounds: between which values a share, or a mean, lies that the requests of a run show.

Each is a ratio of sums over the requests, in the order in which they were due: good requests by requests, short gaps by
gaps, the sum of a latency by how many there are. How much less requests tell that shared the server is told by a
bootstrap of blocks of them (`loadgen.blocks`). Shares are bounded as Wilson has it (J. Am. Stat. Assoc. 22, 1927),
means by the normal distribution.
"""

import math
from statistics import NormalDist

import numpy as np

from loadgen import blocks
from loadgen.schedule import Floats


def of_share(good: Floats, of: Floats, length: int, confidence: float) -> tuple[float, float]:
    """Between which shares that of what is good lies; each bound holds with `confidence`.

    Args:
        good: Of each request, how much of it is good.
        of: Of how much; 0 for a request that does not count. One counts at least.
        length: Of blocks, in requests.
        confidence: Of each bound.
    """
    share, count = _ratio(good, of), int(np.count_nonzero(of))
    independent = share * (1 - share) / count  # the variance, if what counts were a request each, and all independent
    told = count / _alike(good, of, length, independent)
    z = NormalDist().inv_cdf(confidence)
    middle = (share + z * z / (2 * told)) / (1 + z * z / told)
    half = z / (1 + z * z / told) * math.sqrt(share * (1 - share) / told + z * z / (4 * told * told))
    return middle - half, middle + half


def of_mean(total: Floats, of: Floats, length: int, confidence: float) -> tuple[float, float]:
    """Between which values a mean lies; each bound holds with `confidence`.

    Args:
        total: Of each request, the sum of its values.
        of: How many these are; 0 for a request that does not count. One counts at least.
        length: Of blocks, in requests.
        confidence: Of each bound.
    """
    mean = _ratio(total, of)
    independent = float(np.square(total - mean * of).sum()) / float(of.sum()) ** 2
    half = NormalDist().inv_cdf(confidence) * math.sqrt(independent * _alike(total, of, length, independent))
    return mean - half, mean + half


def _ratio(part: Floats, of: Floats) -> float:
    return float(part.sum()) / float(of.sum())


def _alike(part: Floats, of: Floats, length: int, independent: float) -> float:
    """How many requests tell as much of a ratio as one would that shared nothing with others; 1 at least.

    By resampling blocks of the run; where these are too few for that, as many as a block has.

    Args:
        part: Of each request.
        of: Likewise.
        length: Of blocks, in requests.
        independent: What the variance of the ratio would be, if none shared anything.
    """
    if not blocks.tell(len(part), length):
        return length
    variance = float(np.nanvar(blocks.ratios(part, of, length)))
    return max(1.0, variance / independent) if independent else 1.0

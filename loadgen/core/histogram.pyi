"""Histogram: counts of non-negative integers to three significant digits, mergeable without
loss.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

DAY_NS: int

def coarse_row(value: int) -> int:
    """Return the number of the group of 64 neighbouring buckets that counts `value` >= 0, as in
    `Histogram.coarse`.
    """

def coarse_lowest(row: int) -> int:
    """Return the lowest value of the group `row`; the next group begins where it ends."""

@final
class Histogram:
    """How often each value occurred, values being integers (nanoseconds by convention) in
    HdrHistogram's layout.

    Values below 2,048 are kept exactly; above, a bucket is at most 1/1,024 of its lowest value
    wide. Count, sums, minimum and maximum are exact integers, so merging is associative and
    commutative, bit for bit: merged shards equal the whole. The sum of squares has room for 4 *
    10**10 values of 24 hours, or 10**20 of one second.

    Args:
        highest: The largest value counted, from 2 to `DAY_NS` (24 h, the default); larger and
            negative values are counted in `rejects` only.

    Raises:
        ValueError: `highest` is out of its range.
    """

    def __new__(cls, highest: int = ...) -> Histogram: ...
    @property
    def highest(self) -> int:
        """The largest value counted."""
    @property
    def count(self) -> int:
        """How many values were counted, rejects left out."""
    @property
    def rejects(self) -> int:
        """How many values were out of range; they are in no other number."""
    @property
    def total(self) -> int:
        """The sum of the values, exactly."""
    @property
    def total_of_squares(self) -> int:
        """The sum of the squares of the values, exactly."""
    @property
    def min(self) -> int | None:
        """The smallest value, exactly; None when empty."""
    @property
    def max(self) -> int | None:
        """The largest value, exactly; None when empty."""
    @property
    def mean(self) -> float | None:
        """The arithmetic mean, from the exact sum; None when empty."""
    @property
    def std(self) -> float | None:
        """The standard deviation of the population (as `numpy.std`), from the exact sums; None
        when empty.
        """
    def record(self, value: int, count: int = 1) -> bool:
        """Count `value` `count` times (`count` >= 1); False when it is out of range and went to
        `rejects`.
        """
    def record_many(self, values: NDArray[np.int64] | array[int]) -> None:
        """Count every value of a one-dimensional buffer of int64, such as a numpy array or
        `array('q')`.
        """
    def value_at_rank(self, rank: int) -> float:
        """Return the value at `rank`, counted from 0 in ascending order: the middle of its bucket,
        in [min, max].

        It is within 0.05 % of the true value; ranks 0 and `count` - 1 give minimum and maximum
        exactly.

        Raises:
            IndexError: There is no such rank.
        """
    def percentile(self, p: float) -> float | None:
        """Return the `p`-th percentile, 0 <= `p` <= 100, as `numpy.percentile` does by default;
        None when empty.

        Between neighbouring ranks it interpolates linearly (type 7 of Hyndman and Fan, 1996), from
        their `value_at_rank`: so it is within 0.05 % of the percentile of the raw values.

        Raises:
            ValueError: `p` is not in its range.
        """
    def percentiles(self, ps: Iterable[float]) -> list[float | None]:
        """Return the percentile for each of `ps`, in their order."""
    def count_at_or_below(self, value: float) -> int:
        """Return how many values are <= `value`, each taken at its `value_at_rank`: the inverse
        of `percentile`.
        """
    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield (lowest value, highest value, count) of each non-empty bucket, in ascending
        order.
        """
    def coarse(self) -> dict[int, int]:
        """Return the counts of groups of 64 buckets that are not empty, by their lowest value,
        ascending.

        A group is a sixteenth of a doubling wide and ends where doublings do: few enough counts to
        send to another process while a run goes on.
        """
    def merge(self, other: Histogram) -> None:
        """Add the counts of `other`, rejects included, as if its values had been recorded here.

        Raises:
            ValueError: The two have different ranges.
        """
    def __add__(self, other: Histogram) -> Histogram: ...
    def copy(self) -> Histogram:
        """Return an equal histogram that shares nothing with this one."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def to_hdr(self) -> HdrHistogram:
        """Return an `hdrh.histogram.HdrHistogram` with the same counts, minimum and maximum.

        Raises:
            OverflowError: There are 2**62 values or more.
        """
    def encode(self) -> str:
        """Return the counts in HdrHistogram's V2 compressed base64 encoding, which its ports and
        its plotters read.

        Raises:
            OverflowError: There are 2**62 values or more.
        """
    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON from which `from_dict` makes an equal histogram; ints above
        2**53 are strings.
        """
    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Histogram:
        """Return the histogram that `to_dict` turned into `data`.

        Raises:
            BadInput: `data` is not complete, or does not agree with itself.
        """

def live() -> dict[str, int] | None: ...

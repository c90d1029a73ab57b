"""Histogram: counts of non-negative integers to three significant digits, mergeable without
loss.
"""

import math
import zlib
from array import array

from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcmp, memcpy

from loadgen.core.c.memory cimport (
    BYTES, COUNTING, HISTOGRAMS, count_objects, free_pages, live_count, zero_pages,
)

from loadgen.errors import BadInput

DAY_NS = 24 * 3600 * 10**9
_EXACT_IN_JSON = 2**53  # above it a reader that holds numbers as doubles would round
_SIGNIFICANT_DIGITS = 3
_ENCODABLE_COUNTS = 2**62  # the nine-byte varint of the V2 encoding holds zigzagged counts below it
_REMEDY = "use a result file that was written to its end"


cdef inline int64_t lowest_at(int64_t index) noexcept nogil:
    """The lowest value of the bucket at `index`; the next bucket's is one above its highest."""
    cdef int64_t shift = (index >> HALF_BITS) - 1
    if shift <= 0:
        return index
    return (index - (shift << HALF_BITS)) << shift


def coarse_row(int64_t value):
    """Return the number of the group of 64 neighbouring buckets that counts `value` >= 0, as in
    `Histogram.coarse`.
    """
    return index_of(value) // COARSE


def coarse_lowest(int64_t row):
    """Return the lowest value of the group `row`; the next group begins where it ends."""
    return lowest_at(row * COARSE)


cdef class Histogram:
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

    def __cinit__(self, highest=DAY_NS):
        if not 2 <= highest <= DAY_NS:
            raise ValueError(f"highest must be from 2 to {DAY_NS}, not {highest}")
        self.highest = highest
        self.smallest = INT64_MAX
        self.largest = -1
        self.size = index_of(highest) + 1
        self.counts = <int64_t *>zero_pages(self.size * sizeof(int64_t))
        count_objects(HISTOGRAMS, 1)

    def __dealloc__(self):
        if self.counts is not NULL:
            count_objects(HISTOGRAMS, -1)
        free_pages(self.counts, self.size * sizeof(int64_t))

    def record(self, int64_t value, int64_t count=1):
        """Count `value` `count` times (`count` >= 1); False when it is out of range and went to
        `rejects`.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1, not {count}")
        return self.add(value, count)

    def record_many(self, const int64_t[:] values not None):
        """Count every value of a one-dimensional buffer of int64, such as a numpy array or
        `array('q')`.
        """
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0]):
                self.add(values[i], 1)

    @property
    def min(self):
        """The smallest value, exactly; None when empty."""
        return self.smallest if self.count else None

    @property
    def max(self):
        """The largest value, exactly; None when empty."""
        return self.largest if self.count else None

    @property
    def mean(self):
        """The arithmetic mean, from the exact sum; None when empty."""
        return int(self.total) / int(self.count) if self.count else None

    @property
    def std(self):
        """The standard deviation of the population (as `numpy.std`), from the exact sums; None
        when empty.
        """
        if not self.count:
            return None
        count, total, squares = int(self.count), int(self.total), int(self.total_of_squares)
        return math.sqrt(count * squares - total * total) / count

    def value_at_rank(self, int64_t rank):
        """Return the value at `rank`, counted from 0 in ascending order: the middle of its bucket,
        in [min, max].

        It is within 0.05 % of the true value; ranks 0 and `count` - 1 give minimum and maximum
        exactly.

        Raises:
            IndexError: There is no such rank.
        """
        if not 0 <= rank < self.count:
            raise IndexError(f"rank {rank} of a histogram of {self.count} values")
        return self.value_at(rank)

    def percentile(self, double p):
        """Return the `p`-th percentile, 0 <= `p` <= 100, as `numpy.percentile` does by default;
        None when empty.

        Between neighbouring ranks it interpolates linearly (type 7 of Hyndman and Fan, 1996), from
        their `value_at_rank`: so it is within 0.05 % of the percentile of the raw values.

        Raises:
            ValueError: `p` is not in its range.
        """
        if not 0 <= p <= 100:
            raise ValueError(f"a percentile is from 0 to 100, not {p}")
        if not self.count:
            return None
        cdef double position = (self.count - 1) * (p / 100)
        cdef int64_t rank = min(<int64_t>position, self.count - 1)
        cdef double share = position - rank
        cdef double value = self.value_at(rank)
        if share > 0:
            value += (self.value_at(rank + 1) - value) * share
        return value

    def percentiles(self, ps):
        """Return the percentile for each of `ps`, in their order."""
        return [self.percentile(p) for p in ps]

    def count_at_or_below(self, double value):
        """Return how many values are <= `value`, each taken at its `value_at_rank`: the inverse
        of `percentile`.
        """
        cdef int64_t index, seen = 0
        if value >= self.largest:
            return self.count
        if value < self.smallest:
            return 0
        for index in range(index_of(self.smallest), self.size):
            if self.middle(index) > value:
                break
            seen += self.counts[index]
        # Minimum and maximum are known better than by the middle of their buckets.
        return min(max(seen, 1), self.count - 1)

    def __iter__(self):
        """Yield (lowest value, highest value, count) of each non-empty bucket, in ascending
        order.
        """
        cdef int64_t index
        if self.count:
            for index in range(index_of(self.smallest), index_of(self.largest) + 1):
                if self.counts[index]:
                    yield lowest_at(index), lowest_at(index + 1) - 1, self.counts[index]

    def coarse(self):
        """Return the counts of groups of 64 buckets that are not empty, by their lowest value,
        ascending.

        A group is a sixteenth of a doubling wide and ends where doublings do: few enough counts to
        send to another process while a run goes on.
        """
        cdef int64_t index, first = index_of(self.smallest) & ~(COARSE - 1)
        cdef int64_t last = index_of(max(self.largest, 0))
        cdef int64_t together
        counts = {}
        while self.count and first <= last:
            together = 0
            for index in range(first, min(first + COARSE, self.size)):
                together += self.counts[index]
            if together:
                counts[lowest_at(first)] = together
            first += COARSE
        return counts

    def merge(self, Histogram other not None):
        """Add the counts of `other`, rejects included, as if its values had been recorded here.

        Raises:
            ValueError: The two have different ranges.
        """
        cdef int64_t index
        if self.highest != other.highest:
            raise ValueError(
                f"histograms up to {self.highest} and up to {other.highest} do not merge"
            )
        if other.count:  # no page beyond its values is touched: most histograms of a run fill few
            for index in range(index_of(other.smallest), index_of(other.largest) + 1):
                self.counts[index] += other.counts[index]
        self.count += other.count
        self.rejects += other.rejects
        self.total += other.total
        self.total_of_squares += other.total_of_squares
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)

    def __add__(self, Histogram other not None):
        total = self.copy()
        total.merge(other)
        return total

    def copy(self):
        """Return an equal histogram that shares nothing with this one."""
        twin = Histogram(self.highest)
        twin.merge(self)
        return twin

    def __eq__(self, other):
        if not isinstance(other, Histogram):
            return NotImplemented
        cdef Histogram that = other
        cdef int64_t first = index_of(self.smallest) if self.count else 0
        cdef int64_t end = index_of(self.largest) + 1 if self.count else 0
        return (
            self.highest == that.highest
            and self.count == that.count
            and self.rejects == that.rejects
            and self.total == that.total
            and self.total_of_squares == that.total_of_squares
            and self.smallest == that.smallest
            and self.largest == that.largest
            # No page beyond the values is touched.
            and memcmp(&self.counts[first], &that.counts[first],
                       (end - first) * sizeof(int64_t)) == 0
        )

    __hash__ = None

    def __repr__(self):
        return (
            f"<Histogram count={self.count} rejects={self.rejects} min={self.min} "
            f"max={self.max}>"
        )

    def __reduce__(self):
        # Its buckets that are not empty: the other process touches no other page of its counts, and
        # needs no encoding.
        rows = [(lowest, count) for lowest, _, count in self]
        extremes = self.smallest, self.largest
        sums = (self.count, self.rejects, self.total, self.total_of_squares, *extremes)
        return _unpickled, (self.highest, sums, array("q", [low for low, _ in rows]),
                            array("q", [n for _, n in rows]))

    def to_hdr(self):
        """Return an `hdrh.histogram.HdrHistogram` with the same counts, minimum and maximum.

        Raises:
            OverflowError: There are 2**62 values or more.
        """
        # Imported here: a process that measures needs neither.
        import ctypes

        from hdrh.histogram import HdrHistogram

        if self.count >= _ENCODABLE_COUNTS:
            raise OverflowError(f"{self.count} values are more than the encoding's 2**62 - 1")
        cdef int64_t first, end
        hdr = HdrHistogram(1, self.highest, _SIGNIFICANT_DIGITS)
        if self.count:  # no page beyond its values is touched
            first = index_of(self.smallest)
            end = index_of(self.largest) + 1
            ctypes.memmove(
                ctypes.addressof(hdr.counts) + first * sizeof(int64_t),
                <size_t>&self.counts[first], (end - first) * sizeof(int64_t),
            )
            hdr.total_count = self.count
            hdr.min_value = self.smallest
            hdr.max_value = self.largest
        return hdr

    def encode(self):
        """Return the counts in HdrHistogram's V2 compressed base64 encoding, which its ports and
        its plotters read.

        Raises:
            OverflowError: There are 2**62 values or more.
        """
        hdr = self.to_hdr()
        encoded = hdr.encode().decode()
        # histogram and encoder refer to each other: 0.3 MB would wait for the garbage collector
        hdr.encoder = None
        return encoded

    def to_dict(self):
        """Return a dict for JSON from which `from_dict` makes an equal histogram; ints above
        2**53 are strings.
        """
        exact = {
            "count": self.count,
            "rejects": self.rejects,
            "min": self.min,
            "max": self.max,
            "total": self.total,
            "total_of_squares": self.total_of_squares,
        }
        large = {
            name: str(value)
            for name, value in exact.items() if value is not None and value > _EXACT_IN_JSON
        }
        return {"counts": self.encode(), **exact, **large}

    @staticmethod
    def from_dict(data):
        """Return the histogram that `to_dict` turned into `data`.

        Raises:
            BadInput: `data` is not complete, or does not agree with itself.
        """
        cdef Histogram histogram
        try:
            histogram = decoded(data["counts"])
            histogram.count, histogram.rejects = int(data["count"]), int(data["rejects"])
            histogram.total = int(data["total"])
            histogram.total_of_squares = int(data["total_of_squares"])
            if histogram.count:
                histogram.smallest, histogram.largest = int(data["min"]), int(data["max"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadInput("histogram", f"cannot be read: {error!r}", _REMEDY) from error
        if not histogram.agrees():
            raise BadInput("histogram", "count, min or max disagree with the counts", _REMEDY)
        return histogram

    cdef bint agrees(self):
        """Whether count, minimum and maximum fit the counts; all that reads these relies on it
        to stay inside them.
        """
        cdef int64_t index, seen = 0, first = self.size, last = 0
        for index in range(self.size):
            if not 0 <= self.counts[index] <= self.count - seen:
                return False
            if self.counts[index]:
                seen += self.counts[index]
                first, last = min(first, index), index
        if not self.count or self.count != seen:
            return self.count == seen
        # By bounds, since a minimum or maximum beyond the range has no index.
        return (
            lowest_at(first) <= self.smallest < lowest_at(first + 1)
            and lowest_at(last) <= self.largest < lowest_at(last + 1)
        )

    cdef double middle(self, int64_t index) noexcept nogil:
        """Return the value that stands for all values of the bucket at `index`."""
        cdef double value = (lowest_at(index) + lowest_at(index + 1) - 1) / 2.0
        return min(max(value, <double>self.smallest), <double>self.largest)

    cdef double value_at(self, int64_t rank) noexcept nogil:
        """Return `value_at_rank` of a rank that exists."""
        cdef int64_t index, seen
        if rank == 0:
            return self.smallest
        if rank == self.count - 1:
            return self.largest
        index = index_of(self.smallest)
        seen = self.counts[index]
        while seen <= rank:
            index += 1
            seen += self.counts[index]
        return self.middle(index)


def _unpickled(highest, sums, lowest, counts):
    """Return the histogram that was pickled; `lowest` and `counts` are those of the buckets that
    are not empty.
    """
    cdef Histogram histogram = Histogram(highest)
    cdef int64_t value, count
    for value, count in zip(lowest, counts, strict=True):
        if not 0 <= value <= histogram.highest:
            raise ValueError(f"{value} is beyond the range of the histogram")
        histogram.counts[index_of(value)] = count
    histogram.count, histogram.rejects, histogram.total, histogram.total_of_squares = sums[:4]
    histogram.smallest, histogram.largest = sums[4:]
    return histogram


def live():
    """Return the number of this module's live objects and their bytes; None unless it is a debug
    build.
    """
    return {"histograms": live_count(HISTOGRAMS), "bytes": live_count(BYTES)} if COUNTING else None


cdef Histogram decoded(encoded):
    """Return a histogram with the counts of a V2 encoding, and no sums.

    Raises:
        ValueError: It is not a V2 encoding of such counts.
    """
    from hdrh.codec import HdrCookieException, HdrLengthException
    from hdrh.histogram import HdrHistogram

    try:
        hdr = HdrHistogram.decode(encoded)
    except (HdrCookieException, HdrLengthException, IndexError, RuntimeError, zlib.error) as error:
        raise ValueError(f"not a V2 encoding: {error}") from error
    if (hdr.lowest_trackable_value, hdr.significant_figures) != (1, _SIGNIFICANT_DIGITS):
        raise ValueError(f"not counts of integers to {_SIGNIFICANT_DIGITS} digits")
    cdef Histogram histogram = Histogram(hdr.highest_trackable_value)
    cdef bytes counts = bytes(hdr.counts)
    hdr.encoder = None  # as in `encode`
    memcpy(histogram.counts, <const char *>counts,
           min(<size_t>len(counts), histogram.size * sizeof(int64_t)))
    return histogram

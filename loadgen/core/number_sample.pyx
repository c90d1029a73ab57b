# cython: language_level=3
"""NumberSample: which requests of a run are in a sample of them.

Budget per request: two divisions, once the sample is full.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.record cimport Record


@cython.final
cdef class NumberSample:
    """Numbers of requests, spread evenly over a run of unknown length: every `of`-th, as long as
    they are few, then each time they are too many every other of them.

    Args:
        of: How many workers share the run, each with every `of`-th number.
        most: How many numbers may be taken at most, at least 1.

    Attributes:
        records: Those kept of the numbers that are in the sample, as long as they are.
    """
    cdef readonly list records
    cdef int64_t _of, _step
    cdef Py_ssize_t _most
    cdef list _taken

    def __init__(self, int64_t of, Py_ssize_t most):
        if of < 1:
            raise ValueError(of)
        self._of, self._most, self._step = of, most, 1
        self.records, self._taken = [], []

    def keep(self, Record record not None):
        """Keep the record of a number that was taken, if it is still in the sample."""
        if self._wants(record.index):
            self.records.append(record)

    def take(self, int64_t index):
        """Take the number of a request that is sent now; return whether it is in the sample."""
        if not self._wants(index):
            return False
        self._taken.append(index)
        if len(self._taken) > self._most:
            self._step *= 2
            self._taken = [number for number in self._taken if self._wants(number)]
            self.records[:] = [record for record in self.records if self._wants(record.index)]
        return self._wants(index)

    cdef bint _wants(self, int64_t index) noexcept:
        return index // self._of % self._step == 0

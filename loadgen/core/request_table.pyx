# cython: language_level=3
"""RequestTable: what is planned of each prepared request, and its body in a file.

Budget per request: 40 bytes; to send it, its record, its body and one pread(2).
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport int32_t, int64_t
from posix.unistd cimport pread

from loadgen.core.c.memory cimport BYTES, COUNTING, append_bytes, free_buffer, live_count
from loadgen.core.record cimport Record


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


@cython.final
cdef class RequestTable:
    """The rows of a store of requests.

    A request beyond the last row repeats one of them, unless there is `add_rows`.

    Args:
        file: The descriptor of the file with the bodies, end to end.

    Attributes:
        add_rows: Called where a request lies beyond the last row; adds rows with `extend`, and
            returns whether there were any: if not, it becomes None. None: there are no more rows.
        output_tokens: The sum of the planned output tokens; an unknown plan counts as 0.
    """
    def __init__(self, int file):
        self._file = file

    def __dealloc__(self):
        free_buffer(&self._rows)

    def __len__(self):
        return self._count

    def extend(
        self, const int64_t[:] ends, const int64_t[:] input_tokens, const int64_t[:] output_tokens,
        const int64_t[:] server_tokens, const int64_t[:] classes, const int64_t[:] texts
    ):
        """Add rows, of each of which these have a number.

        Args:
            ends: Where its body ends in the file.
            input_tokens: Planned, or UNPLANNED.
            output_tokens: Planned.
            server_tokens: Input tokens that the server is expected to count; -1: not known.
            classes: Which of the run's classes it is in.
            texts: The texts in its body, each of which has a result; 0: not known, or an answer has
                tokens.

        Raises:
            ValueError: They are not equally many.
        """
        cdef Py_ssize_t i, count = ends.shape[0]
        cdef Row row
        if not (count == input_tokens.shape[0] == output_tokens.shape[0]
                == server_tokens.shape[0] == classes.shape[0] == texts.shape[0]):
            raise ValueError(f"the columns do not all have {count} numbers")
        for i in range(count):
            row = Row(
                ends[i], input_tokens[i], output_tokens[i], server_tokens[i],
                <int32_t>classes[i], <int32_t>texts[i],
            )
            append_bytes(&self._rows, <const char *>&row, sizeof(Row))
            self.output_tokens += max(row.output_tokens, 0)
        self._count += count

    cpdef Py_ssize_t row(self, int64_t index) except -1:
        """Return which row request `index` has."""
        if 0 <= index < self._count:
            return index
        while index >= self._count and self.add_rows is not None:
            if not self.add_rows():
                self.add_rows = None
        if index < 0 or self._count == 0:
            raise IndexError(index)
        return index % self._count

    def tokens(self, int64_t index):
        """Return the planned input and output tokens of request `index`."""
        cdef Row *row = self._at(self.row(index))
        return row.input_tokens, row.output_tokens

    cpdef Record record(self, int64_t index, int64_t due_ns):
        """Make the record of request `index`: what is planned, its class, and when it is due."""
        cdef Row *row = self._at(self.row(index))
        cdef Record record = Record.__new__(Record)
        record.index, record.due = index, due_ns
        record.input_tokens, record.output_tokens = row.input_tokens, row.output_tokens
        record.server_tokens, record.class_number = row.server_tokens, row.class_number
        record.texts = row.texts
        return record

    cpdef bytes body(self, int64_t index):
        """Read the JSON body of request `index`.

        Raises:
            OSError: The file cannot be read.
        """
        # pread, not a mapping: pages read stay in the page cache and out of the process's resident
        # memory
        cdef Py_ssize_t row = self.row(index)
        cdef int64_t start = self._at(row - 1).end if row else 0
        cdef Py_ssize_t size = self._at(row).end - start, count
        cdef bytes body = PyBytes_FromStringAndSize(NULL, size)
        count = pread(self._file, PyBytes_AS_STRING(body), size, start)
        if count < 0:
            PyErr_SetFromErrno(OSError)
        return body if count == size else body[:count]

    cdef Row *_at(self, Py_ssize_t row) noexcept:
        return <Row *>self._rows.data + row

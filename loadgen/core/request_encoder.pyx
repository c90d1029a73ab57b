# cython: language_level=3
"""RequestEncoder: the bytes of the requests to one target.

Budget per request: two numbers are printed, and the pieces copied once.
"""
cimport cython
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from loadgen.core.c.digits cimport PLACES, put_decimal, put_signed
from loadgen.core.record cimport Record

import secrets

from loadgen.util.redaction import Redaction

cdef bytes LENGTH = b"\r\nContent-Length: "
cdef const char *LENGTH_NAME = LENGTH
cdef Py_ssize_t LENGTH_BYTES = len(LENGTH)


@cython.final
cdef class RequestEncoder:
    """Puts the head of its class before the body of each request.

    Args:
        target: Where the requests go, a `workload.target.Target`; X-Request-Ids of two encoders
            differ.
    """

    def __init__(self, target):
        self._run = f"{secrets.token_hex(8)}-"
        self.use(target)

    def use(self, target):
        """Take the heads of this target from now on: the same one with other credentials."""
        self._heads = [
            (kind.head(self._run), kind.session_line(self._run), Redaction(kind.headers))
            for kind in target.each_class
        ]
        self._generates, self._streams = target.generates, target.streams
        self._sign = None if target.api.sign is None else target.signature

    @cython.boundscheck(True)
    cpdef bytes encode(self, Record record, bytes body):
        """Return head and body of a request; the record gets what its answer is, and what must
        not be shown of it.
        """
        cdef bytes head
        head, session_line, record.redaction = self._heads[record.class_number]
        if not self._streams:
            record.is_whole = self._generates
            record.results = -1 if self._generates else 0
        cdef bytes lines = b""
        if record.turn >= 0 and session_line is not None:
            lines = b"%b%d\r\n" % (session_line, record.index - record.turn)
        if record.session_token is not None:
            lines += record.session_token
        if record.trace_line is not None:
            lines += record.trace_line
        if self._sign is not None:
            for name, value in self._sign(body).items():
                lines += f"{name}: {value}\r\n".encode("latin-1")
        cdef Py_ssize_t size = PyBytes_GET_SIZE(body)
        cdef char[PLACES + 1] number
        cdef char[PLACES] length
        cdef Py_ssize_t number_bytes = put_signed(number, record.index) - number
        cdef Py_ssize_t length_bytes = put_decimal(length, size) - length
        cdef bytes request = PyBytes_FromStringAndSize(
            NULL,
            PyBytes_GET_SIZE(head) + number_bytes + LENGTH_BYTES + length_bytes + 2
            + PyBytes_GET_SIZE(lines) + 2 + size,
        )
        cdef char *end = PyBytes_AS_STRING(request)
        end = _put(end, PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head))
        end = _put(end, number, number_bytes)
        end = _put(end, LENGTH_NAME, LENGTH_BYTES)
        end = _put(end, length, length_bytes)
        end = _put(end, b"\r\n", 2)
        end = _put(end, PyBytes_AS_STRING(lines), PyBytes_GET_SIZE(lines))
        end = _put(end, b"\r\n", 2)
        _put(end, PyBytes_AS_STRING(body), size)
        return request


cdef inline char *_put(char *end, const char *piece, Py_ssize_t size) noexcept:
    """Append a piece, and return where the next one goes."""
    memcpy(end, piece, size)
    return end + size

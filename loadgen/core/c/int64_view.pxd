# cython: language_level=3
"""The int64 of another object's buffer, such as a numpy array's or an `array('q')`'s, without Cython's memoryviews.

Their code would be a tenth of a wheel.
"""
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t
from libc.string cimport strcmp


cdef struct Int64View:
    Py_buffer buffer
    Py_ssize_t size  # how many values


cdef inline int hold(Int64View *view, object values, bint writable=False) except -1:
    """View `values`, one-dimensional, until `release`.

    Raises:
        TypeError: It has no buffer.
        ValueError: Its buffer is another one.
        BufferError: It cannot be written.
    """
    PyObject_GetBuffer(values, &view.buffer, PyBUF_FORMAT | PyBUF_STRIDES | (PyBUF_WRITABLE if writable else 0))
    cdef const char *format = view.buffer.format
    if view.buffer.ndim != 1 or view.buffer.itemsize != 8 or (strcmp(format, "q") != 0 and strcmp(format, "l") != 0):
        PyBuffer_Release(&view.buffer)
        raise ValueError("values: must be a one-dimensional buffer of int64")
    view.size = view.buffer.shape[0]
    return 0


cdef inline void release(Int64View *view) noexcept:
    """Give the buffer back; nothing where none is held."""
    PyBuffer_Release(&view.buffer)


cdef inline int64_t *value_at(Int64View *view, Py_ssize_t i) noexcept nogil:
    """Return where the value i lies, 0 <= i < size."""
    return <int64_t *>(<char *>view.buffer.buf + i * view.buffer.strides[0])

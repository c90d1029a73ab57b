# cython: language_level=3
"""The C side of the scanner of a dialect."""
cimport cython

from loadgen.core.c.json_cursor cimport Cursor, Text
from loadgen.core.c.json_scan cimport Delta

cdef enum:
    # As in dialect.py, which refuses more.
    MAX_TYPES = 128
    MAX_PATHS = 64
    MAX_ROOTS = 16
    MAX_KEYS = 4

cdef struct TextPath:
    int root                # the number of its first key
    int further             # how many keys follow
    Text[MAX_KEYS] keys     # these
    int flags

cdef struct EventType:
    Text name
    int first, end          # its paths; none: it says nothing


@cython.final
cdef class DialectScanner:
    cdef readonly object dialect
    cdef list _names        # bytes that the texts below point into
    cdef Text _type_key
    cdef Text[MAX_ROOTS] _roots
    cdef Text[MAX_ROOTS] _decisive
    cdef TextPath[MAX_PATHS] _paths
    cdef EventType[MAX_TYPES] _types
    cdef int _roots_count, _decisive_count, _paths_count, _types_count
    cdef Text _text(self, str name)
    cdef int _add(self, str name, list paths) except -1
    cdef bint scan(self, const char *p, Py_ssize_t n, Delta *out) noexcept nogil

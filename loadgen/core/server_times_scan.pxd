# cython: language_level=3
"""The C side of the reader of server times."""
from loadgen.core.c.json_scan cimport Delta
from loadgen.core.c.server_times cimport ServerTimes

cdef bint scan_times(const Delta *delta, ServerTimes *said)

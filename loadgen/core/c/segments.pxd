# cython: language_level=3
"""What the kernel's counters of a TCP socket tell of the last read: whether it was of one segment,
and whether segments were lost or overtaken on the way.
"""
from libc.stdint cimport int64_t, uint64_t

from loadgen.core.c.kernel cimport TcpNumbers, tcp_numbers

cdef enum:
    PROMPT_NS = 50000  # the error of a stamp that is read sooner is in FLOOR_MS


cdef struct Segments:
    uint64_t bytes_read  # in all reads
    # When the kernel was asked last:
    TcpNumbers numbers
    bint count_agreed  # whether the bytes that had come were those of the reads
    # Since then:
    int64_t reads
    bint all_emptied  # whether each read emptied the socket
    # Of the last read:
    bint was_asked
    bint is_known  # whether the kernel answered
    bint came_together  # whether it was of one segment, if the kernel was asked
    bint was_reordered  # whether any segment of this response may have come before an earlier one


cdef inline void begin_segments(Segments *segments, uint64_t bytes_read) noexcept:
    """Begin to count, after so many bytes were read."""
    segments.all_emptied = segments.count_agreed = True
    segments.bytes_read = bytes_read


cdef inline void add_read(Segments *segments, Py_ssize_t n, bint emptied) noexcept:
    """Count a read of n bytes."""
    segments.bytes_read += n
    segments.reads += 1
    segments.all_emptied = segments.all_emptied and emptied
    segments.was_asked = False


cdef inline bint is_early(Segments *segments, int fd, int64_t age_ns) noexcept:
    """Return whether the stamp of a read, that of its last segment, may be too early: that segment
    may have come before one that was lost or overtaken, and be readable only since that one came.

    Args:
        age_ns: How much older it is than the read.
    """
    if age_ns > PROMPT_NS and not segments.was_reordered:
        ask_segments(segments, fd)
    return age_ns > PROMPT_NS and segments.was_reordered


cdef inline void begin_response(Segments *segments, int fd) noexcept:
    """Begin to count the segments of the next response."""
    if segments.was_reordered:  # those that were lost since belong to the last response
        segments.was_asked = False
        ask_segments(segments, fd)
    segments.was_reordered = False


cdef inline bint ask_segments(Segments *segments, int fd) noexcept:
    """Ask the kernel, once for each read, whether every read since it was asked before was of one
    segment, and whether segments of this response may have been reordered.

    Returns:
        Whether the last read was of one segment.
    """
    cdef TcpNumbers now
    cdef bint has_agreed = segments.count_agreed
    if segments.was_asked:
        return segments.came_together
    segments.was_asked, segments.came_together = True, False
    segments.is_known = tcp_numbers(fd, &now)
    if not segments.is_known:
        return False
    if now.out_of_order != segments.numbers.out_of_order or now.out_of_order < 0:
        segments.was_reordered = True
    # The kernel counts a segment that has come since: then the bytes do not agree. Of segments that
    # came before an earlier one it counts no bytes: then the segments were counted too soon.
    segments.count_agreed = now.bytes == segments.bytes_read
    segments.came_together = (
        has_agreed
        and segments.count_agreed
        and segments.all_emptied
        and not segments.was_reordered
        and now.segments - segments.numbers.segments == <uint64_t>segments.reads
    )
    segments.numbers, segments.reads, segments.all_emptied = now, 0, True
    return segments.came_together

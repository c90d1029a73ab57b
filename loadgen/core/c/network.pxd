# cython: language_level=3
"""What is known of the network between loadgen and a server: how a connection was opened, and what
TCP saw while it carried a request.
"""
from libc.stdint cimport int32_t, int64_t

from loadgen.core.c.kernel cimport tcp_numbers

cdef enum:
    UNKNOWN = -1

cdef struct Opening:
    # UNKNOWN: no connection was opened for the request.
    int64_t dns_ns, tcp_ns, tls_ns

cdef struct TcpFacts:
    # UNKNOWN: the kernel does not say.
    int32_t min_rtt_us, rtt_us
    int32_t out_of_order  # segments that came before an earlier one, during the request
    int32_t retransmits  # segments that were sent again, during the request

cdef struct TcpCounts:
    int32_t out_of_order, retransmits  # since the connection was opened


cdef inline void ask_tcp(int fd, TcpCounts *before, TcpFacts *facts) noexcept:
    """Ask the kernel at the end of a request.

    Args:
        before: The counts at the end of the request before; they become those of now.
    """
    cdef int32_t[4] numbers
    if not tcp_numbers(fd, numbers):
        return
    facts.min_rtt_us, facts.rtt_us = numbers[0], numbers[1]
    facts.out_of_order = UNKNOWN if numbers[2] < 0 else numbers[2] - before.out_of_order
    facts.retransmits = numbers[3] - before.retransmits
    before.out_of_order, before.retransmits = numbers[2], numbers[3]

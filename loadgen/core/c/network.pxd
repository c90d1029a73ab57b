# cython: language_level=3
"""What is known of the network between loadgen and a server: how a connection was opened, and what
TCP saw while it carried a request.
"""
from libc.stdint cimport int32_t, int64_t

from loadgen.core.c.kernel cimport TcpNumbers

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


cdef inline void set_facts(TcpFacts *facts, TcpNumbers *now, TcpNumbers *before) noexcept:
    """Set what TCP saw during a request.

    Args:
        now: The numbers at its end.
        before: Those at the end of the request before; they become those of now.
    """
    facts.min_rtt_us, facts.rtt_us = now.min_rtt_us, now.rtt_us
    facts.out_of_order = (
        UNKNOWN if now.out_of_order < 0 else now.out_of_order - before.out_of_order
    )
    facts.retransmits = now.retransmits - before.retransmits
    before[0] = now[0]

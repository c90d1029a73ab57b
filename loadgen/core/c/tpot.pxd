"""TPOT, the time per output token: what it is divided by, inlined where it is cimported.

loadgen divides the time from the first event to the last by the tokens that were streamed after the first event: the
tokens of the first event took none of that time, and hidden reasoning tokens were never streamed. vLLM divides by all
output tokens but one, whatever was streamed. An answer in a single event has no TPOT.
"""

from libc.stdint cimport int64_t


cdef inline int64_t tokens_of_tpot(int64_t events, int64_t answer, int64_t hidden, int64_t in_first_event) noexcept:
    """Return the tokens by which loadgen divides; 0: there is no TPOT.

    Args:
        events: Token-bearing events of the answer.
        answer: Tokens of the answer.
        hidden: Those of them that were never streamed.
        in_first_event: Those of them in the first event.
    """
    return answer - hidden - in_first_event if events > 1 else 0


cdef inline int64_t tokens_of_vllms_tpot(int64_t events, int64_t answer) noexcept:
    """Return the tokens by which vLLM divides; 0: there is no TPOT."""
    return answer - 1 if events > 1 else 0

"""W3C Trace Context: ids with which the spans of a request and those of its server are one trace.

The ids are a function of the run's key and of the number of the request, so no record keeps them.
"""

import hashlib
import secrets
from typing import NamedTuple

KEY_BYTES = 16
SAMPLED = "01"


class TraceIds(NamedTuple):
    """The ids of a request, in hex.

    Attributes:
        trace_id: Of its trace, 16 bytes.
        span_id: Of its span, 8 bytes, which is the parent of the server's.
    """

    trace_id: str
    span_id: str


def new_key() -> str:
    """Draw the key of a run, in hex."""
    return secrets.token_hex(KEY_BYTES)


def trace_ids(key: str, index: int) -> TraceIds:
    """Return the ids of a request.

    Args:
        key: The key of the run.
        index: The number of the request.
    """
    digest = hashlib.blake2b(b"%d" % index, digest_size=24, key=bytes.fromhex(key)).hexdigest()
    return TraceIds(digest[:32], digest[32:])


def traceparent(key: str, index: int) -> str:
    """Return the value of the header that a request has (https://www.w3.org/TR/trace-context/).

    Args:
        key, index: As for `trace_ids`.
    """
    ids = trace_ids(key, index)
    return f"00-{ids.trace_id}-{ids.span_id}-{SAMPLED}"

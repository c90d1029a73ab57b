"""How a request can end: every scheduled request ends in exactly one of these."""

from enum import StrEnum


class Outcome(StrEnum):
    """The single ending of a request."""

    OK = "ok"  # at least one token and a finish reason
    REFUSED = "refused"  # no connection, or it closed before any byte of a response
    DNS_ERROR = "dns_error"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_ERROR = "tls_error"
    STATUS = "status"  # an HTTP status other than 200; the code stands in the record
    TIMEOUT_FIRST_TOKEN = "timeout_first_token"
    STALLED = "stalled"  # a started stream fell silent for too long
    TIMEOUT = "timeout"  # the whole request took too long
    TRUNCATED = "truncated"  # tokens came, a finish reason never did
    STREAM_ERROR = "stream_error"  # an error object inside a 200
    PROTOCOL_ERROR = "protocol_error"  # bytes that are not the protocol
    EMPTY = "empty"  # a whole response without a single token
    DROPPED = "dropped"  # never sent: a safety cap
    CANCELLED = "cancelled"  # never finished: the run was interrupted
    CLIENT_ERROR = "client_error"  # our own fault


NO_FINISH_REASON = "the stream ended without a finish reason"  # of what is truncated though its response is whole

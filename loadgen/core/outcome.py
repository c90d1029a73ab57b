"""Outcome: how a request ended. Every scheduled request ends with exactly one."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a request; its value is the name in files.

    Attributes:
        about: What it means, in one sentence.
    """

    about: str

    def __new__(cls, value: str, about: str = "") -> "Outcome":
        """Make a member of its value and its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.about = about
        return member

    OK = "ok", "At least one token came, and a finish reason or [DONE]."
    REFUSED = "refused", "No connection, or it was closed before any byte of a response."
    DNS_ERROR = "dns_error", "The server's name could not be resolved."
    CONNECT_TIMEOUT = "connect_timeout", "No connection within --connect-timeout."
    TLS_ERROR = "tls_error", "The TLS handshake failed, or the certificate was not accepted."
    STATUS = "status", "An HTTP status that is no success (2xx)."
    TIMEOUT_FIRST_TOKEN = "timeout_first_token", "No token within --first-token-timeout."
    STALLED = "stalled", "A stream fell silent for --stall-timeout."
    TIMEOUT = "timeout", "The whole request took longer than --timeout."
    TRUNCATED = "truncated", "Tokens came, and the stream ended without a finish reason."
    STREAM_ERROR = (
        "stream_error",
        "The server sent an error inside a stream, or the finish reason of a failure.",
    )
    PROTOCOL_ERROR = "protocol_error", "The response violates the protocol."
    EMPTY = "empty", "A whole response without a single token."
    DROPPED = "dropped", "Never sent: a safety cap."
    CANCELLED = "cancelled", "Never finished: the run ended early, or a turn before it had failed."
    DISCONNECTED = (
        "disconnected",
        "Its user left: the client closed the connection, as --disconnect asks.",
    )
    CLIENT_ERROR = (
        "client_error",
        "Never sent: the client itself failed, for example for lack of file descriptors.",
    )


# Of the client, which never sent them: no failures of the server.
OUR_FAULTS = (Outcome.DROPPED, Outcome.CLIENT_ERROR)
# Neither the server nor the client failed.
NO_FAILURES = (Outcome.OK, Outcome.CANCELLED, Outcome.DISCONNECTED)
NO_FINISH_REASON = (
    "the stream ended without a finish reason"  # of what is truncated though its response is whole
)
BROKEN_AFTER_END = "the connection broke after the end of the answer"  # of what is ok

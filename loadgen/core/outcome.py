"""Outcome: how a request ended. Every scheduled request ends with exactly one."""

from collections.abc import Mapping
from enum import Enum, StrEnum


class Cause(Enum):
    """What ended a request. It decides where the request counts: the server and the client are at
    fault for failures; what the run or a user ended is in no latency and no error rate.
    """

    ANSWER = "the end of the answer"
    SERVER = "a fault of the server"
    CLIENT = "a fault of the client, which never sent it"
    RUN = "the end of the run, or the failure of a turn before it"
    USER = "a user who did not wait for the end of the answer"


class Outcome(StrEnum):
    """The outcome of a request; its value is the name in files.

    Attributes:
        about: What it means, in one sentence.
        cause: What ended the request.
    """

    about: str
    cause: Cause

    def __new__(cls, value: str, about: str = "", cause: Cause = Cause.SERVER) -> "Outcome":
        """Make a member of its value, its meaning and its cause."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.about = about
        member.cause = cause
        return member

    OK = "ok", "At least one token came, and a finish reason or [DONE].", Cause.ANSWER
    REFUSED = "refused", "No connection, or it was closed before any byte of a response."
    DNS_ERROR = "dns_error", "The server's name could not be resolved."
    CONNECT_TIMEOUT = "connect_timeout", "No connection within --connect-timeout."
    TLS_ERROR = "tls_error", "The TLS handshake failed, or the certificate was not accepted."
    STATUS = "status", "An HTTP status other than success (2xx)."
    TIMEOUT_FIRST_TOKEN = "timeout_first_token", "No token within --first-token-timeout."
    STALLED = "stalled", "A stream sent nothing for --stall-timeout."
    TIMEOUT = "timeout", "The whole request took longer than --timeout."
    TRUNCATED = "truncated", "Tokens came, and the stream ended without a finish reason."
    STREAM_ERROR = (
        "stream_error",
        "The server sent an error inside a stream, or the finish reason of a failure.",
    )
    PROTOCOL_ERROR = "protocol_error", "The response violates the protocol."
    EMPTY = "empty", "A whole response without a single token."
    CANCELLED = (
        "cancelled",
        "Never finished: the run ended early, or a turn before it had failed.",
        Cause.RUN,
    )
    DISCONNECTED = (
        "disconnected",
        "Its user left: the client closed the connection (--disconnect).",
        Cause.USER,
    )
    CLIENT_ERROR = (
        "client_error",
        "The client itself failed, for example for lack of file descriptors.",
        Cause.CLIENT,
    )


_CAUSES = {outcome.value: outcome.cause for outcome in Outcome}
NO_FINISH_REASON = (
    "the stream ended without a finish reason"  # of what is truncated though its response is whole
)
BROKEN_AFTER_END = "the connection broke after the end of the answer"  # of what is ok


def ended_by(outcomes: Mapping[str, int], *causes: Cause) -> int:
    """Count the requests that ended by one of these causes.

    Args:
        outcomes: Requests by class, with "status(404)" for an HTTP status.
        causes: The causes.
    """
    return sum(count for name, count in outcomes.items() if cause_of(name) in causes)


def cause_of(name: str | None) -> Cause:
    """Return the cause of an outcome, or of a class of requests; one that is not known, as in a
    file of a later version, counts as a fault of the server.
    """
    return _CAUSES.get(str(name).partition("(")[0], Cause.SERVER)


def is_failure(name: str) -> bool:
    """Return whether the requests of a class have failed."""
    return cause_of(name) in (Cause.SERVER, Cause.CLIENT)

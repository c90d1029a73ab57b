"""How a request can end: every scheduled request ends in exactly one of these."""

from enum import StrEnum


class Outcome(StrEnum):
    """The single ending of a request.

    Attributes:
        about: What it means, in a sentence.
    """

    about: str

    def __new__(cls, value: str, about: str = "") -> "Outcome":
        """A member, as Enum makes it of its value and what it means."""
        made = str.__new__(cls, value)
        made._value_, made.about = value, about
        return made

    OK = "ok", "At least one token came, and a finish reason."
    REFUSED = "refused", "No connection, or it was closed before any byte of a response."
    DNS_ERROR = "dns_error", "The server's name could not be resolved."
    CONNECT_TIMEOUT = "connect_timeout", "No connection within --connect-timeout."
    TLS_ERROR = "tls_error", "The TLS handshake failed, or the certificate was not accepted."
    STATUS = "status", "An HTTP status other than 200."
    TIMEOUT_FIRST_TOKEN = "timeout_first_token", "No token within --first-token-timeout."
    STALLED = "stalled", "A stream fell silent for --stall-timeout."
    TIMEOUT = "timeout", "The whole request took longer than --timeout."
    TRUNCATED = "truncated", "Tokens came, and the stream ended without a finish reason."
    STREAM_ERROR = "stream_error", "The server sent an error inside a stream that had begun well."
    PROTOCOL_ERROR = "protocol_error", "What came is not the protocol."
    EMPTY = "empty", "A whole response without a single token."
    DROPPED = "dropped", "Never sent: a safety cap."
    CANCELLED = "cancelled", "Never finished: the run ended early, or a turn before it had failed."
    CLIENT_ERROR = "client_error", "Never sent: a fault of the client's own, as a want of file descriptors."


OUR_FAULTS = (Outcome.DROPPED, Outcome.CLIENT_ERROR)  # of the client, which never sent them: no failures of the server
NO_FINISH_REASON = "the stream ended without a finish reason"  # of what is truncated though its response is whole

"""Errors of aiohttp's reader, as outcomes of a request."""

from loadgen.core.outcome import Outcome


def outcome_of(error: Exception) -> Outcome:
    """Return the outcome of a response that aiohttp's reader could not read to its end."""
    from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

    cause = error.__cause__ or error
    cut_off = isinstance(cause, ContentLengthError | TransferEncodingError)  # less came than the framing promised
    broken = isinstance(cause, HttpProcessingError) and not cut_off
    return Outcome.PROTOCOL_ERROR if broken else Outcome.TRUNCATED

"""Maps errors of asyncio and aiohttp to the outcome of a request."""

import asyncio
import errno
import os
import ssl
from typing import Any

from loadgen.core.outcome import Outcome

# Errors of connecting that are this machine's, not the server's.
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}


def of_connecting(error: BaseException) -> Outcome:
    """Return the outcome of a request for which no connection could be opened."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            return Outcome.DNS_ERROR
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Outcome.TLS_ERROR
        case asyncio.TimeoutError():
            return Outcome.CONNECT_TIMEOUT
        case OSError(errno=number) if number in OUR_LIMITS:
            return Outcome.CLIENT_ERROR
        case aiohttp.ClientConnectionError() | OSError():
            return Outcome.REFUSED
    return Outcome.CLIENT_ERROR


def reason(error: BaseException) -> str:
    """Describe an error of connecting, with the system's reason for a failed connection."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return f"the certificate is not trusted ({getattr(cause, 'verify_message', '') or cause}; see --insecure)"
        case aiohttp.ClientConnectorSSLError(host=host, port=port, os_error=cause):
            why = getattr(cause, "reason", None) or cause
            return f"no TLS with {host}:{port} ({why}; if the server has no TLS, write http://)"
        case aiohttp.ClientConnectorError(host=host, port=port, os_error=cause):
            number = cause.errno or 0  # below 0 for a name that cannot be resolved
            text = os.strerror(number) if number > 0 else cause.strerror or str(cause)
            return f"no connection to {host}:{port} ({text})"
    return str(error) or type(error).__name__


def of_handshake(error: BaseException, key: Any) -> BaseException:
    """Return the error to raise for one of a TLS handshake, as aiohttp has it where it opens the session itself.

    Args:
        error: The error.
        key: aiohttp's key of the connection.
    """
    import aiohttp

    match error:
        case ssl.SSLCertVerificationError():
            return aiohttp.ClientConnectorCertificateError(key, error)
        case ssl.SSLError():
            return aiohttp.ClientConnectorSSLError(key, error)
        case asyncio.TimeoutError():
            return TimeoutError("the TLS handshake took longer than --connect-timeout")
    return error


def of_reading(error: Exception) -> Outcome:
    """Return the outcome of a response that aiohttp's reader could not read to its end."""
    from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

    cause = error.__cause__ or error
    cut_off = isinstance(cause, ContentLengthError | TransferEncodingError)  # less came than the framing promised
    broken = isinstance(cause, HttpProcessingError) and not cut_off
    return Outcome.PROTOCOL_ERROR if broken else Outcome.TRUNCATED

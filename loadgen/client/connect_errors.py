"""Errors of connecting: what they mean for a request, and what to tell the user."""

import errno
import os
import re
import socket
import ssl

from loadgen.core.outcome import Outcome

# Errors of connecting that are this machine's, not the server's.
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
LOOKING_UP, CONNECTING, SHAKING_HANDS = "looking up", "connecting", "shaking hands"


class CannotConnect(Exception):
    """No connection could be opened; the text says why.

    Attributes:
        outcome: What that makes of a request.
    """

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def cannot_connect(error: Exception, address: str, step: str) -> CannotConnect:
    """Return the error to raise for one that was met.

    Args:
        error: The error.
        address: Host and port of the server.
        step: LOOKING_UP, CONNECTING or SHAKING_HANDS.
    """
    match error:
        case socket.gaierror() | UnicodeError():  # of a name with a label of more than 63 characters
            why = getattr(error, "strerror", None) or "no valid name"
            return CannotConnect(Outcome.DNS_ERROR, f"no connection to {address} ({why})")
        case ssl.SSLCertVerificationError():
            why = f"{getattr(error, 'verify_message', '') or error}; see --insecure"
            return CannotConnect(Outcome.TLS_ERROR, f"the certificate is not trusted ({why})")
        case ssl.SSLError():
            why = f"{getattr(error, 'reason', '') or error}; if the server has no TLS, write http://"
            return CannotConnect(Outcome.TLS_ERROR, f"no TLS with {address} ({why})")
        case TimeoutError() if step == LOOKING_UP:
            return CannotConnect(Outcome.CONNECT_TIMEOUT, f"no address of {address} within --connect-timeout")
        case TimeoutError() if step == SHAKING_HANDS:
            return CannotConnect(Outcome.CONNECT_TIMEOUT, "the TLS handshake took longer than --connect-timeout")
        case TimeoutError():
            how_long = "in time" if error.errno else "within --connect-timeout"  # the system has a limit, too
            return CannotConnect(Outcome.CONNECT_TIMEOUT, f"no connection to {address} {how_long}")
        case OSError() if numbers := _errnos(error):
            outcome = Outcome.CLIENT_ERROR if numbers & OUR_LIMITS else Outcome.REFUSED
            reasons = "; ".join(map(os.strerror, sorted(numbers)))
            return CannotConnect(
                outcome, f"no {'TLS with' if step == SHAKING_HANDS else 'connection to'} {address} ({reasons})"
            )
        case OSError():
            return CannotConnect(Outcome.REFUSED, str(error))
    return CannotConnect(Outcome.CLIENT_ERROR, str(error) or type(error).__name__)


def _errnos(error: OSError) -> set[int]:
    """Return the errnos of an error. For several addresses, aiohappyeyeballs puts them into the text only."""
    if error.errno is not None:
        return {error.errno}
    return set(map(int, re.findall(r"\[Errno (\d+)\]", str(error))))

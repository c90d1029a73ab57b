"""What an error of connecting makes of a request, and what the user reads."""

import errno
import os
import socket
import ssl

import pytest

from loadgen.core.outcome import Outcome
from loadgen.util.dialer import CONNECTING, LOOKING_UP, TLS_HANDSHAKE, cannot_connect

REFUSED, UNREACHABLE, FILES, PORTS = (
    errno.ECONNREFUSED,
    errno.ENETUNREACH,
    errno.EMFILE,
    errno.EADDRNOTAVAIL,
)


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def several(*numbers: int) -> OSError:
    """What aiohappyeyeballs raises where addresses fail for different reasons."""
    return OSError(f"Multiple exceptions: {', '.join(map(str, map(os_error, numbers)))}")


@pytest.mark.parametrize(
    ("error", "step", "outcome", "said"),
    [
        (
            os_error(REFUSED),
            CONNECTING,
            Outcome.REFUSED,
            "no connection to a:1 (Connection refused)",
        ),
        (
            os_error(FILES),
            CONNECTING,
            Outcome.CLIENT_ERROR,
            "no connection to a:1 (Too many open files)",
        ),
        (
            several(UNREACHABLE, REFUSED),
            CONNECTING,
            Outcome.REFUSED,
            "no connection to a:1 (Network is unreachable; Connection refused)",
        ),
        (
            several(REFUSED, PORTS),
            CONNECTING,
            Outcome.CLIENT_ERROR,
            "no connection to a:1 (Cannot assign requested address; Connection refused)",
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            LOOKING_UP,
            Outcome.DNS_ERROR,
            "no connection to a:1 (Name or service not known)",
        ),
        (
            TimeoutError(),
            LOOKING_UP,
            Outcome.CONNECT_TIMEOUT,
            "no address of a:1 within --connect-timeout",
        ),
        (
            TimeoutError(),
            CONNECTING,
            Outcome.CONNECT_TIMEOUT,
            "no connection to a:1 within --connect-timeout",
        ),
        (
            os_error(errno.ETIMEDOUT),
            CONNECTING,
            Outcome.CONNECT_TIMEOUT,
            "no connection to a:1 in time",
        ),
        (
            TimeoutError(),
            TLS_HANDSHAKE,
            Outcome.CONNECT_TIMEOUT,
            "the TLS handshake took longer than --connect-timeout",
        ),
        (
            ConnectionResetError("connection closed inside the TLS handshake"),
            TLS_HANDSHAKE,
            Outcome.REFUSED,
            "connection closed inside the TLS handshake",
        ),
        (
            ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"),
            TLS_HANDSHAKE,
            Outcome.TLS_ERROR,
            "no TLS with a:1 ([SSL: WRONG_VERSION_NUMBER] wrong version number; if the server has "
            "no TLS, write http://)",
        ),
        (RuntimeError(), CONNECTING, Outcome.CLIENT_ERROR, "RuntimeError"),
    ],
)
def test_error_is_an_outcome_with_a_reason(
    error: Exception, step: str, outcome: Outcome, said: str
) -> None:
    found = cannot_connect(error, "a:1", step)
    assert (Outcome(found.kind), str(found)) == (outcome, said)


def test_host_name_that_cannot_be_encoded_is_no_name() -> None:
    with pytest.raises(UnicodeError) as found:
        f"{'a' * 64}.example".encode("idna")
    assert cannot_connect(found.value, "a:1", LOOKING_UP).kind == "dns_error"

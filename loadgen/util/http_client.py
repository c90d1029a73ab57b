"""A small HTTP client for probes, scrapes, ready checks and progress reports. It never sends load."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from loadgen.errors import Unreachable

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_BYTES = 16 << 20  # of a response to a probe


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a probe."""

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """Parse the body as JSON; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


async def get(
    url: str, *, headers: dict[str, str] | None = None, verify_tls: bool = True, timeout_s: float = 10.0
) -> Reply:
    """Send a GET request, and return the response of any status.

    Raises:
        Unreachable: No response, none in time, or one that is too large.
    """
    return await _request("GET", url, None, headers or {}, verify_tls, timeout_s)


async def send_json(
    url: str,
    body: bytes,
    *,
    method: str = "POST",
    headers: dict[str, str],
    verify_tls: "bool | SSLContext",
    timeout_s: float = 60.0,
) -> Reply:
    """Send a request with a JSON body, and return the response of any status.

    Args:
        url: The resource.
        body: The JSON.
        method: POST, or PATCH to change the resource.
        headers: Headers in addition to the content type.
        verify_tls: Whether to verify certificates, or the TLS context to verify them with.
        timeout_s: Limit for the whole exchange, s.

    Raises:
        Unreachable: No response, none in time, or one that is too large.
    """
    return await _request(method, url, body, {"Content-Type": "application/json"} | headers, verify_tls, timeout_s)


async def _request(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    verify_tls: "bool | SSLContext",
    timeout_s: float,
) -> Reply:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
            session.request(method, url, data=body, headers=headers, ssl=verify_tls, allow_redirects=False) as response,
        ):
            content = bytearray()
            async for part in response.content.iter_any():
                content += part
                if len(content) > MAX_BYTES:
                    raise Unreachable(f"{url}: the response is larger than {MAX_BYTES >> 20} MiB")
            return Reply(response.status, bytes(content), dict(response.headers))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise Unreachable(f"{url}: {error_reason(error) or f'no response in {timeout_s:g} s'}") from error


def error_reason(error: BaseException) -> str:
    """Describe an error of aiohttp, with the system's reason for a failed connection. May be empty."""
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
    return str(error)

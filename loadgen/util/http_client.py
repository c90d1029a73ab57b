"""A small HTTP client for probes, scrapes, ready checks and progress; never for load."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from loadgen.errors import Unreachable

if TYPE_CHECKING:
    from ssl import SSLContext

LARGEST = 16 << 20  # bytes of an answer: more is not what a probe asks for


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a probe."""

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """The body as JSON; None if it is not."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


async def get(
    url: str, *, headers: dict[str, str] | None = None, verify_tls: bool = True, timeout_s: float = 10.0
) -> Reply:
    """Fetch `url`, whatever the status.

    Raises:
        Unreachable: No answer, none in time, or one without end.
    """
    return await _ask("GET", url, None, headers, verify_tls, timeout_s)


async def post(
    url: str, body: bytes, *, headers: dict[str, str] | None = None, verify_tls: bool = True, timeout_s: float = 60.0
) -> Reply:
    """Send `body`, which is JSON, and take the whole answer, whatever the status.

    Raises:
        Unreachable: No answer, or none in time.
    """
    return await _ask("POST", url, body, {"Content-Type": "application/json"} | (headers or {}), verify_tls, timeout_s)


async def patch(
    url: str,
    body: bytes,
    *,
    headers: dict[str, str] | None = None,
    verify_tls: "bool | SSLContext" = True,
    timeout_s: float = 10.0,
) -> Reply:
    """Change what `url` names by `body`, which is JSON, whatever the status of the answer.

    Args:
        url: What to change.
        body: The change.
        headers: Beside the content type.
        verify_tls: Whether, or by which certificates.
        timeout_s: For the whole answer.

    Raises:
        Unreachable: No answer, or none in time.
    """
    return await _ask("PATCH", url, body, {"Content-Type": "application/json"} | (headers or {}), verify_tls, timeout_s)


async def _ask(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str] | None,
    verify_tls: "bool | SSLContext",
    timeout_s: float,
) -> Reply:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
            session.request(method, url, data=body, headers=headers, ssl=verify_tls, allow_redirects=False) as response,
        ):
            answer = bytearray()
            async for part in response.content.iter_any():
                answer += part
                if len(answer) > LARGEST:
                    raise Unreachable(f"{url}: an answer of more than {LARGEST >> 20} MiB, which is none to a probe")
            return Reply(response.status, bytes(answer), dict(response.headers))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise Unreachable(f"{url}: {reason(error) or f'no answer in {timeout_s:g} s'}") from error


def reason(error: BaseException) -> str:
    """What an error of aiohttp's says, with the system's own words for why there is no connection; may be empty."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return f"the certificate is not trusted ({getattr(cause, 'verify_message', '') or cause}; see --insecure)"
        case aiohttp.ClientConnectorSSLError(host=host, port=port, os_error=cause):
            why = getattr(cause, "reason", None) or cause
            return f"no TLS with {host}:{port} ({why}; where it has none, write http://)"
        case aiohttp.ClientConnectorError(host=host, port=port, os_error=cause):
            number = cause.errno or 0  # of a name that is not resolved it is below 0
            said = os.strerror(number) if number > 0 else cause.strerror or str(cause)
            return f"no connection to {host}:{port} ({said})"
    return str(error)

"""URLs of servers as users paste them: with `/v1` or without it, or those of an endpoint.

A base URL names what precedes `/v1`. Where it names an API that has another version, or a
deployment of Azure, endpoints follow it directly.
"""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from loadgen.config.backends import ENDINGS, V1

# Paths of APIs whose endpoints have no /v1.
ROOT = re.compile(r"/v\d+(?:alpha|beta)?\d*(?:/openai)?$|/openai/deployments/[^/]+$")
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)$")


def parsed(url: str) -> SplitResult | None:
    """Split the URL of a server; None if it is not a valid one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    plain = url.isascii() and url.isprintable() and " " not in url
    return parts if usable and plain and not parts.fragment else None


def read(urls: tuple[str, ...], endpoint: str | None) -> tuple[tuple[str, ...], str | None]:
    """Read the URLs and the endpoint of a run as they were given.

    Args:
        urls: The values of --base-url; one that is no URL stays as it is.
        endpoint: The value of --endpoint, or None.

    Returns:
        URLs without /v1, and the endpoint: that of the URLs, if all of them have the same and none
        was given.
    """
    urls = tuple(map(_with_scheme, urls))
    if endpoint is None:
        pairs = [_split(url) for url in urls]
        endpoints = {path for _, path in pairs}
        if len(endpoints) == 1 and None not in endpoints:
            return tuple(base for base, _ in pairs), endpoints.pop()
    keeps_v1 = endpoint is not None and not f"{endpoint}/".startswith(f"{V1}/")
    return urls if keeps_v1 else tuple(map(_without_v1, urls)), endpoint


def endpoint_of(url: str) -> str | None:
    """Return the path and query of the endpoint that a URL names; None if it is a base URL."""
    return _split(url)[1]


def _split(url: str) -> tuple[str, str | None]:
    """Split a URL into its base and its endpoint with the query; None: it names none."""
    parts = parsed(url)
    path = "" if parts is None else parts.path.rstrip("/")
    ending = next((ending for ending in ENDINGS if path.endswith(ending)), None)
    if parts is None or ending is None:
        return url, None
    before = path.removesuffix(ending)
    prefix = V1 if before.endswith(V1) else ""
    base = parts._replace(path=before.removesuffix(prefix), query="").geturl()
    return base, prefix + ending + (f"?{parts.query}" if parts.query else "")


def _without_v1(url: str) -> str:
    parts = parsed(url)
    path = "" if parts is None else parts.path.rstrip("/")
    if parts is None or not path.endswith(V1):
        return url
    return parts._replace(path=path.removesuffix(V1)).geturl()


def _with_scheme(url: str) -> str:
    """Return a URL with http://, as curl reads one that names a port or an address and no scheme.

    A public name without a port has most likely https, and a key is not sent to it in clear text.
    """
    parts = None if "://" in url else parsed(f"http://{url}")
    if parts is None:
        return url
    try:
        ipaddress.ip_address(parts.hostname or "")
        is_address = True
    except ValueError:
        is_address = parts.hostname == "localhost"
    has_port = parts.port not in (None, 443)
    return parts.geturl() if "@" not in url and (has_port or is_address) else url

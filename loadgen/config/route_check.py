"""Checks of the way to the server: whether the fields of TLS, proxy and Unix socket fit together,
and whether their files can be used.
"""

from loadgen.config.run_fields import RunFields
from loadgen.config.target import FROM_ENVIRONMENT
from loadgen.errors import BadInput, setting
from loadgen.util.route import (
    PROXY,
    UNIX_SOCKET,
    Route,
    is_socket_path,
    proxy_url,
)

TLS_FIELDS = ("ca_cert", "client_cert", "client_key", "server_name")


def check(settings: RunFields) -> None:
    """Check the fields that say how connections are opened.

    Raises:
        BadInput: The first value that cannot be used.
    """
    _check_tls(settings)
    if settings.proxy is not None:
        if settings.proxy != FROM_ENVIRONMENT:
            proxy_url(settings.proxy)
        if not settings.urls and settings.host is None:
            raise BadInput(PROXY, "given without a server to reach", f"give {setting.base_url}")
    if settings.unix_socket is None:
        return
    if not is_socket_path(settings.unix_socket):
        problem = f"{settings.unix_socket!r} is no path of a Unix socket: it has 1 to 107 bytes"
        raise BadInput(UNIX_SOCKET, problem, "name one that has")
    if len(settings.urls) > 1:
        problem = f"given for {len(settings.urls)} servers, and one listens on it"
        raise BadInput(UNIX_SOCKET, problem, f"give one {setting.base_url}")


def _check_tls(settings: RunFields) -> None:
    fields = [name for name in TLS_FIELDS if getattr(settings, name) is not None]
    urls = (*settings.urls, *settings.server_metrics, *settings.profile_url)
    if fields and not any(url.startswith("https://") for url in urls):
        problem = "given without a server that has TLS"
        raise BadInput(
            setting(fields[0]), problem, f"give {setting.base_url} https://HOST, or leave it out"
        )
    if fields:
        Route(
            ca_cert=settings.ca_cert,
            client_cert=settings.client_cert,
            client_key=settings.client_key,
        ).tls_context()

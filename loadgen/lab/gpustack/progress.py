"""Reports the progress of a job to the URL of --progress-url."""

import asyncio
import logging
from dataclasses import dataclass, field

import orjson

from loadgen.errors import BadInput, Unreachable, setting, written_as
from loadgen.util import http_client
from loadgen.util.route import Route

EVERY_S = 1.0
TIMEOUT_S = 10.0
DONE = 100.0
MAX_UNFINISHED = 99.9  # reported at most while the job goes on


@dataclass(frozen=True)
class Receiver:
    """The server that receives the progress.

    Attributes:
        url: The URL of the PATCH requests, whose body is {"progress": percent}.
        token: The bearer token, or None.
        ca_cert: A file of CA certificates; None: those of the system.
        insecure: Do not verify the server's certificate.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    ca_cert: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BadInput(
                "--progress-url", f"{self.url!r} is not a URL", "write it with http:// or https://"
            )
        with written_as({setting.ca_cert: ("--progress-ca-cert",)}):
            self.route.tls_context()

    @property
    def route(self) -> Route:
        """How it is reached."""
        return Route(verify=not self.insecure, ca_cert=None if self.insecure else self.ca_cert)


class Reporter:
    """Sends the progress to a receiver; failures are logged once for each reason, and do not end
    the job.

    Args:
        receiver: The receiver; None: nothing is sent.
    """

    def __init__(self, receiver: Receiver | None) -> None:
        self._receiver = receiver
        self._percent = 0.0
        self._changed = asyncio.Event()
        self._last: asyncio.Future[None] | None = None  # the report that was sent last
        self._logged = set[str]()

    def update(self, percent: float) -> None:
        """Send this progress soon, if it is new."""
        percent = max(0.0, min(percent, MAX_UNFINISHED))
        if percent > self._percent or not self._changed.is_set():
            self._percent = percent
            self._changed.set()

    async def run(self) -> None:
        """Send new progress, at most every EVERY_S seconds, until cancelled."""
        if self._receiver is not None:
            import aiohttp  # noqa: F401 - before the clock of a run starts
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._last = asyncio.ensure_future(self._send(self._percent))
            await asyncio.shield(self._last)  # where this is cancelled, the report still arrives
            await asyncio.sleep(EVERY_S)

    async def finish(self) -> None:
        """Report that the job is done, after the report that is under way."""
        if self._last is not None:
            await self._last
        await self._send(DONE)

    async def _send(self, percent: float) -> None:
        receiver = self._receiver
        if receiver is None:
            return
        headers = {} if receiver.token is None else {"Authorization": f"Bearer {receiver.token}"}
        try:
            reply = await http_client.send_json(
                receiver.url,
                orjson.dumps({"progress": percent}),
                method="PATCH",
                headers=headers,
                route=receiver.route,
                timeout_s=TIMEOUT_S,
            )
        except Unreachable as error:
            self._log(str(error))
            return
        if reply.status >= 300:
            self._log(f"{receiver.url} answered {reply.status}")

    def _log(self, why: str) -> None:
        if why not in self._logged:
            self._logged.add(why)
            logging.warning("progress could not be reported: %s", why)

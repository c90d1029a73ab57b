"""Progress: how far a job is, told to the URL that it was given for that."""

import asyncio
import logging
import ssl
from dataclasses import dataclass, field

import orjson

from loadgen.errors import BadInput, Unreachable
from loadgen.util import http_client

EVERY_S = 1.0
DONE = 100.0
UNFINISHED = 99.9  # the most that is told while the job goes on


@dataclass(frozen=True)
class Receiver:
    """Who wants to know.

    Attributes:
        url: Where a PATCH with {"progress": percent} goes.
        token: Bearer token for it, or None.
        ca_cert: File of certificates by which it is verified, in place of the system's; or None.
        insecure: Do not verify it.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    ca_cert: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BadInput("--progress-url", f"{self.url!r} is no URL", "write it with http:// or https://")
        self.trust()

    def trust(self) -> "bool | ssl.SSLContext":
        """What TLS is verified by.

        Raises:
            BadInput: The certificates cannot be read.
        """
        if self.insecure or self.ca_cert is None:
            return not self.insecure
        try:
            return ssl.create_default_context(cafile=self.ca_cert)
        except (OSError, ssl.SSLError) as error:
            problem = f"{self.ca_cert} cannot be read ({error.strerror or error})"
            raise BadInput("--progress-ca-cert", problem, "name a file of certificates in PEM") from error


class Reporter:
    """Tells a receiver now and then; why it could not be told is logged once for each reason, and ends nothing."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver, self._trust = receiver, receiver.trust()
        self._percent, self._changed = 0.0, asyncio.Event()
        self._logged = set[str]()

    def tell(self, percent: float) -> None:
        """Have this told soon, unless it is told already."""
        percent = max(0.0, min(percent, UNFINISHED))
        if percent > self._percent or not self._changed.is_set():
            self._percent = percent
            self._changed.set()

    async def run(self) -> None:
        """Tell what is new, at most every EVERY_S, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._send(self._percent)
            await asyncio.sleep(EVERY_S)

    async def finish(self) -> None:
        """Tell that the job is done."""
        await self._send(DONE)

    async def _send(self, percent: float) -> None:
        receiver = self._receiver
        headers = {} if receiver.token is None else {"Authorization": f"Bearer {receiver.token}"}
        try:
            reply = await http_client.patch(
                receiver.url, orjson.dumps({"progress": percent}), headers=headers, verify_tls=self._trust
            )
        except Unreachable as error:
            self._log(str(error))
            return
        if reply.status >= 300:
            self._log(f"{receiver.url} answered {reply.status}")

    def _log(self, why: str) -> None:
        if why not in self._logged:
            self._logged.add(why)
            logging.warning("progress could not be told: %s", why)

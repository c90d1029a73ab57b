"""`KeyRenewal`: the keys of a run that a command prints (--api-key-command)."""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from loadgen.errors import BadInput
from loadgen.metrics.progress import Progress
from loadgen.util import key_command

LOOK_S = 0.25  # between two looks at the progress of a run
LEAD_S = 10.0  # a key is renewed so long before its end, or a tenth of what is left of it
PAUSE_S = 60.0  # after a renewal, what the servers refuse may have been sent with the key before it

logger = logging.getLogger("loadgen")


class KeyRenewal:
    """Runs the command again when its key ends, and when a server answers 401.

    Args:
        command: The command, which has run already; None: there is none.
        progress: Returns how far the run is.
        use: Has all that sends requests use the latest key.

    Attributes:
        count: How often the command has printed another key.
    """

    def __init__(
        self, command: str | None, progress: Callable[[], Progress], use: Callable[[], None]
    ) -> None:
        self._command = command
        self._progress = progress
        self._use = use
        self.count = 0

    async def keep(self) -> None:
        """Renew the key whenever it is due, until cancelled."""
        key = key_command.latest(self._command)
        if self._command is None or key is None:
            return
        due_s, refused, asked_s = _due_s(key), 0, -math.inf
        while True:
            await asyncio.sleep(LOOK_S)
            before, refused = refused, self._progress().unauthorized
            is_refused = refused > before and time.monotonic() >= asked_s + PAUSE_S
            if not is_refused and time.time() < due_s:
                continue
            if is_refused:
                asked_s = time.monotonic()
            new = await self._renewed(self._command, key)
            if new is not None:
                key, due_s = new, _due_s(new)
                self._use()
                self.count += 1
            else:  # again at its very end, and then when the servers refuse it
                due_s = key.expires_s if due_s < key.expires_s else math.inf

    @staticmethod
    async def _renewed(command: str, key: key_command.Key) -> key_command.Key | None:
        """Run the command; return its key if that is another one."""
        try:
            new = await key_command.renew(command)
        except BadInput as error:
            logger.warning("%s; the run goes on with the key that it has", error)
            return None
        return new if new.text != key.text else None


async def ensure(command: str | None) -> None:
    """Run a command unless it has printed a key that has not ended; None does nothing.

    Raises:
        BadInput: It prints no key.
    """
    if command is None:
        return
    key = key_command.latest(command)
    if key is None or time.time() >= _due_s(key):
        await key_command.renew(command)


def _due_s(key: key_command.Key) -> float:
    """Return when a key is to be renewed, s of Unix time; infinity if it does not say its end."""
    return key.expires_s - min(LEAD_S, (key.expires_s - time.time()) / 10)

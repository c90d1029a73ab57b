"""`CacheFlush`: empties the prefix cache of a server by the call that its engine has for this."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from loadgen.config.load import CACHE
from loadgen.errors import BadInput
from loadgen.metrics.records.trailer import ServerCall
from loadgen.util.http_client import Reply

# vLLM's, and SGLang's, which waits so many seconds until no request runs.
PATHS = ("/reset_prefix_cache", "/flush_cache?timeout=60")
SLOTS = "/slots"  # llama.cpp's: each keeps its last prompt
UNKNOWN_PATH = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
REMEDY = (
    "start vLLM with VLLM_SERVER_DEV_MODE=1, or llama.cpp with --slot-save-path FOLDER --cache-ram 0, or give "
    f"{CACHE} salted"
)
BUSY_REMEDY = f"wait until the server is idle, or give {CACHE} salted"


class Answer(NamedTuple):
    """A call, and what the server answered; None: nothing."""

    call: ServerCall
    reply: Reply | None

    @property
    def is_unknown(self) -> bool:
        """Whether the server has no such path."""
        return self.reply is not None and self.reply.status in UNKNOWN_PATH

    @property
    def error(self) -> str | None:
        """Why the cache was not emptied; None if it was."""
        said = self.reply.json() if self.reply is not None else None
        if self.call.error is None and isinstance(said, dict) and said.get("success") is False:
            return f"{self.call.url} answers that it has not emptied its cache"
        return self.call.error


Send = Callable[[str, str, str], Awaitable[Answer]]  # of a method, a server and a path


class CacheFlush:
    """Finds the call of each server when it is made for the first time.

    Args:
        send: Sends a request without a body.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._paths: dict[str, Sequence[str]] = {}  # by server

    async def empty(self, server: str) -> list[ServerCall]:
        """Empty the prefix cache of a server, and return the calls that did.

        Raises:
            BadInput: It has no call for this, or refuses it.
        """
        if server in self._paths:
            return [await self._require(server, path) for path in self._paths[server]]
        for path in PATHS:
            if not (answer := await self._send("POST", server, path)).is_unknown:
                self._paths[server] = [path]
                return [_required(answer)]
        slots = await self._slots(server)
        if not slots or (first := await self._send("POST", server, slots[0])).is_unknown:
            raise BadInput(CACHE, f"{server} has no call that empties its prefix cache", REMEDY)
        self._paths[server] = slots
        return [_required(first), *[await self._require(server, path) for path in slots[1:]]]

    async def _require(self, server: str, path: str) -> ServerCall:
        return _required(await self._send("POST", server, path))

    async def _slots(self, server: str) -> list[str]:
        """Return the paths that erase the slots of a llama.cpp; empty if it is none."""
        reply = (await self._send("GET", server, SLOTS)).reply
        listed = reply.json() if reply is not None and reply.status == HTTPStatus.OK else None
        slots = listed if isinstance(listed, list) else []
        return [f"{SLOTS}/{slot['id']}?action=erase" for slot in slots if isinstance(slot, dict) and "id" in slot]


def _required(answer: Answer) -> ServerCall:
    """Return the call.

    Raises:
        BadInput: It failed.
    """
    if answer.error is not None:
        raise BadInput(CACHE, f"POST {answer.error}", BUSY_REMEDY)
    return answer.call

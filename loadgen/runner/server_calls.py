"""Calls to the server beside the load: before the clock starts and after it, to empty caches and
for the profiler.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, Self

import orjson

from loadgen.config.load import CACHE, COLD
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Unreachable, setting
from loadgen.metrics.records.trailer import Moment, ServerCall
from loadgen.util import http_client
from loadgen.util.http_client import Reply
from loadgen.util.redaction import Redaction, redact_user
from loadgen.workload import target

# The paths of vLLM and SGLang that empty a prefix cache. SGLang waits so many seconds until no
# request runs.
PATHS = ("/reset_prefix_cache", "/flush_cache?timeout=60")
SLOTS = "/slots"  # of llama.cpp: each keeps its last prompt
OK = 200
UNKNOWN_PATH = (404, 405, 501)  # not found, method not allowed, not implemented
NO_FLUSH_REMEDY = (
    "start vLLM with VLLM_SERVER_DEV_MODE=1, or llama.cpp with --slot-save-path FOLDER "
    f"--cache-ram 0, or give {CACHE} salted"
)
BUSY_REMEDY = f"wait until the server is idle, or give {CACHE} salted"
START = "/start_profile"
STOP = "/stop_profile"
# Fields of --profile-body after which no stop is needed.
ENDS_ITSELF = ("num_steps", "max_iterations")
TIMEOUT_S = 3600.0  # the profiler of a large model writes its traces for many minutes
POLL_S = 0.5
PROFILER_REMEDY = (
    "start vLLM with --profiler-config, or SGLang with a profiler that is idle, or "
    f"leave {setting.profile} out"
)
REMEDY = "see the server's log, or leave the call out"


class Answer(NamedTuple):
    """A call that was made, and its answer.

    Attributes:
        call: The call.
        reply: What the server answered; None: nothing.
    """

    call: ServerCall
    reply: Reply | None

    @property
    def is_unknown(self) -> bool:
        """Whether the server has no such path."""
        return self.reply is not None and self.reply.status in UNKNOWN_PATH

    @property
    def error(self) -> str | None:
        """Why the cache was not emptied; None if it was."""
        answer = self.reply.json() if self.reply is not None else None
        if self.call.error is None and isinstance(answer, dict) and answer.get("success") is False:
            return f"{self.call.url} answers that it has not emptied its cache"
        return self.call.error


class ServerCalls:
    """Makes the calls that the settings ask for, before and after the block.

    Args:
        settings: The settings of the run, resolved, with the URLs at which the servers answer.
        running: Returns how many requests the servers run now, None if that is unknown; None: they
            have no metrics.

    Attributes:
        made: The calls so far, in their order.
    """

    def __init__(self, settings: RunSettings, running: Callable[[], float | None] | None) -> None:
        self._settings = settings
        self._running = running
        self._servers = {target.base_url(server): server for server in settings.apart()}
        self._profiled: list[str] = []  # whose profiler is running
        self._waiting: asyncio.Task[None] | None = None
        self._flush = CacheFlush(partial(self._send, "before"))
        self.made: list[ServerCall] = []

    async def __aenter__(self) -> Self:
        """Make the calls before the run.

        Raises:
            BadInput: A server refuses one of them, or the profiler is to wait for what no server
                reports.
        """
        threshold = self._settings.profile_batch_threshold
        if threshold is not None and self._running is None:
            problem = "no server reports how many requests it runs"
            raise BadInput(
                setting.profile_batch_threshold,
                problem,
                f"leave it out, or name metrics with {setting.server_metrics}",
            )
        await self.empty_caches()
        for path in self._settings.call_before:
            _refuse_failed(await self._post("before", [*self._servers], path))
        if threshold is not None and self._running is not None:
            import aiohttp  # noqa: F401 - before the clock starts, since the first call comes during the load

            self._waiting = asyncio.create_task(self._profile_when_busy(threshold, self._running))
        elif self._settings.profile:
            try:
                _refuse_failed(await self._start_profiler("before"))
            except BadInput:
                await self._stop_profiler("before")
                raise
        return self

    async def empty_caches(self) -> None:
        """Empty the prefix cache of each server if it is to be cold.

        Raises:
            BadInput: A server has no call for this, or refuses it.
        """
        if self._settings.cache == COLD:
            for calls in await asyncio.gather(*map(self._flush.empty, self._servers)):
                self.made.extend(calls)

    async def __aexit__(self, *error: object) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.gather(self._waiting, return_exceptions=True)
        await self._stop_profiler("after")

    async def _profile_when_busy(self, threshold: int, running: Callable[[], float | None]) -> None:
        """Start the profiler once the servers run enough requests, and stop it after its time."""
        while True:
            if (running() or 0) >= threshold:
                break
            await asyncio.sleep(POLL_S)
        await self._start_profiler("during")
        await asyncio.sleep(self._settings.profile_duration)
        await asyncio.shield(asyncio.ensure_future(self._stop_profiler("during")))

    async def _start_profiler(self, moment: Moment) -> Sequence[ServerCall]:
        servers = [url.rstrip("/") for url in self._settings.profile_url] or [*self._servers]
        body = self._settings.profile_body
        calls = await self._post(
            moment, servers, START, b"" if body is None else orjson.dumps(body)
        )
        if not set(ENDS_ITSELF) & set(body or ()):
            self._profiled = [
                server for server, call in zip(servers, calls, strict=True) if call.error is None
            ]
        return calls

    async def _stop_profiler(self, moment: Moment) -> None:
        servers, self._profiled = self._profiled, []
        await self._post(moment, servers, STOP)

    async def _post(
        self, moment: Moment, servers: Sequence[str], path: str, body: bytes = b""
    ) -> Sequence[ServerCall]:
        """Send the same request to all of these servers at once."""
        answers = await asyncio.gather(
            *(self._send(moment, "POST", server, path, body) for server in servers)
        )
        calls = [answer.call for answer in answers]
        self.made.extend(calls)
        return calls

    async def _send(
        self, moment: Moment, method: str, server: str, path: str, body: bytes = b""
    ) -> Answer:
        url = server + path
        begun = time.monotonic()
        # Credentials go to the measured servers alone.
        measured = (
            target.headers(alone)
            for base, alone in self._servers.items()
            if target.origin(base) == target.origin(server)
        )
        headers = next(measured, {})
        reply = None
        error = None
        try:
            reply = await http_client.send_json(
                url,
                body,
                method=method,
                headers=headers,
                route=target.route(self._settings, url),
                timeout_s=TIMEOUT_S,
            )
        except Unreachable as unreachable:
            error = str(unreachable)
        else:
            if not 200 <= reply.status < 300:
                # The beginning of what the server says about it, without the credentials of the
                # run.
                text = " ".join(Redaction(headers)(reply.body.decode("utf-8", "replace")).split())
                error = f"{redact_user(url)} answers {reply.status}" + (
                    f" ({text[:100]})" if text else ""
                )
        return Answer(
            ServerCall(moment, redact_user(url), (time.monotonic() - begun) * 1e3, error), reply
        )


Send = Callable[[str, str, str], Awaitable[Answer]]  # of a method, a server and a path


class CacheFlush:
    """Empties the prefix cache of servers by the call that their engines have for this.

    The call of a server is found by trying, when it is made for the first time.

    Args:
        send: Sends a request without a body.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._paths: dict[str, Sequence[str]] = {}  # by server

    async def empty(self, server: str) -> list[ServerCall]:
        """Empty the prefix cache of a server.

        Args:
            server: The URL of the server.

        Returns:
            The calls that did.

        Raises:
            BadInput: It has no call for this, or refuses it.
        """
        if server in self._paths:
            return [await self._require(server, path) for path in self._paths[server]]
        for path in PATHS:
            answer = await self._send("POST", server, path)
            if not answer.is_unknown:
                self._paths[server] = [path]
                return [_required(answer)]
        slots = await self._slots(server)
        if not slots or (first := await self._send("POST", server, slots[0])).is_unknown:
            raise BadInput(
                CACHE, f"{server} has no call that empties its prefix cache", NO_FLUSH_REMEDY
            )
        self._paths[server] = slots
        return [_required(first), *[await self._require(server, path) for path in slots[1:]]]

    async def _require(self, server: str, path: str) -> ServerCall:
        return _required(await self._send("POST", server, path))

    async def _slots(self, server: str) -> list[str]:
        """Return the paths that erase the slots of a llama.cpp; empty if it is none."""
        reply = (await self._send("GET", server, SLOTS)).reply
        answer = reply.json() if reply is not None and reply.status == OK else None
        slots = answer if isinstance(answer, list) else []
        return [
            f"{SLOTS}/{slot['id']}?action=erase"
            for slot in slots
            if isinstance(slot, dict) and "id" in slot
        ]


def _required(answer: Answer) -> ServerCall:
    """Return the call of an answer.

    Raises:
        BadInput: The call failed.
    """
    if answer.error is not None:
        raise BadInput(CACHE, f"POST {answer.error}", BUSY_REMEDY)
    return answer.call


def _refuse_failed(calls: Sequence[ServerCall]) -> None:
    """Refuse the run if a call failed.

    Raises:
        BadInput: Naming the first.
    """
    for call in calls:
        if call.error is not None:
            field, remedy = (
                (setting.profile, PROFILER_REMEDY)
                if START in call.url
                else (setting.call_before, REMEDY)
            )
            raise BadInput(field, f"POST {call.error}", remedy)

"""The simulator's process: wait for the simulated start-up time, listen, and serve until SIGINT
or SIGTERM.
"""

import asyncio
import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import cast

import uvloop

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.api import Api
from loadgen.engines.sim.connection import ServerConnection, listen
from loadgen.engines.sim.deployment import StartFailed
from loadgen.engines.sim.engine_core import CorePool
from loadgen.engines.sim.http1 import Request
from loadgen.engines.sim.planted import FreezableTransport
from loadgen.engines.sim.settings import Faults, SimSettings, log_of, read
from loadgen.engines.sim.tokenizer import TOKENIZER, SimTokenizer
from loadgen.errors import BadInput, LoadgenError
from loadgen.util import garbage_collection

START_SEED = (
    "LOADGEN_START_SEED"  # variable with the seed of the noise, unless --noise-seed gives it
)


class SimConnection(ServerConnection):
    """One client's connection.

    Args:
        api: Answers the requests.
    """

    def __init__(self, api: Api) -> None:
        super().__init__()
        self._api = api
        self._answer: Answer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, as one that can be frozen where streams are."""
        super().connection_made(transport)
        if self._api.freezes_streams:
            freezable = FreezableTransport(self.transport, asyncio.get_running_loop())
            self.transport = cast(asyncio.Transport, freezable)

    @property
    def fields(self) -> tuple[str, ...]:
        """Header lines that every response has: also its date and the name of the server."""
        return _date(int(time.time())), "server: loadgen-sim", *super().fields

    def handle(self, request: Request) -> None:
        """Answer a request, at once or through an engine core."""
        self._answer = self._api.answer(request, self)

    def finish(self) -> None:
        """Note that the response is complete."""
        self._answer = None
        super().finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the client's unfinished answer from the engine."""
        if self._answer is not None:
            self._answer.abandon()
            self._api.cores.abort(self._answer)
            self._answer = None


@functools.lru_cache(1)
def _date(second: int) -> str:
    """Return the header line with the date at a Unix time, s; formatting it takes longer than
    the rest of a head.
    """
    return time.strftime("date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime(second))


async def serve(settings: SimSettings, faults: Faults) -> None:
    """Serve until SIGINT or SIGTERM; print the URL, the model and the tokenizer, a line each.

    Raises:
        LoadgenError: The address cannot be used.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set if not faults.ignore_sigterm else lambda: None)
    if faults.orphan:
        print(f"orphan {leave_orphan()}", flush=True)
    cores = CorePool(settings, loop, faults)
    tokenizer = SimTokenizer()
    api = Api(settings, faults, cores, tokenizer)
    if settings.startup_s:
        print(f"loading for {settings.startup_s:.1f} s", flush=True)
    if faults.early_health:
        api.state = "loading"
    else:
        await _wait(settings.startup_s, stop)
    if faults.fault and not faults.fault_after:
        api.fail()
    if not stop.is_set():
        server = await listen(lambda: SimConnection(api), settings.host, settings.port)
        port = server.sockets[0].getsockname()[1]
        print(f"listening on http://{settings.host}:{port}")
        print(f"model {settings.served_model_name}\ntokenizer {TOKENIZER}", flush=True)
        if api.state == "loading":
            await _wait(settings.startup_s, stop)
            api.state = "ready"
        await stop.wait()
        # Open streams end with the process, as those of a killed engine do.
        server.close()
    cores.close()


async def _wait(seconds: float, stop: asyncio.Event) -> None:
    if seconds:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)


def leave_orphan() -> int:
    """Start a process that sleeps for ever and is never stopped; return its id."""
    sleep = "import signal; signal.pause()"
    return subprocess.Popen([sys.executable, "-S", "-c", sleep], start_new_session=True).pid


def noise_seed() -> dict[str, int]:
    """Return the seed of the noise that the program which starts this server has set."""
    text = os.environ.get(START_SEED, "")
    if text and not text.isdecimal():
        raise BadInput(
            START_SEED, f"{text!r} is not a whole number", "unset it, or give a whole number"
        )
    return {"noise_seed": int(text)} if text else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code: 0, 1 (it cannot start) or 2
    (bad flag).
    """
    # Requests leave no reference cycles; a full garbage collection would stop the engine for many
    # steps.
    gc.freeze()
    garbage_collection.collect_rarely()
    try:
        uvloop.run(serve(*read(argv, noise_seed())))
    except StartFailed as failed:
        sys.stderr.write(log_of(str(failed)))
        return 1
    except LoadgenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    return 0

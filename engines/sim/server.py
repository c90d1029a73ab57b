"""The simulator's process: wait for the simulated start-up time, listen, and serve until SIGINT or SIGTERM."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import uvloop

from loadgen.engines.sim.api import Api
from loadgen.engines.sim.connection import Connection
from loadgen.engines.sim.deployment import StartFailed
from loadgen.engines.sim.engine_core import CorePool
from loadgen.engines.sim.settings import Faults, SimSettings, log_of, read
from loadgen.engines.sim.tokenizer import TOKENIZER, SimTokenizer
from loadgen.errors import BadInput, EngineError
from loadgen.util import garbage_collection

BACKLOG = 16384  # a load generator may open all its connections at once
START_SEED = "LOADGEN_START_SEED"  # variable with the seed of the noise, unless --noise-seed gives it


async def serve(settings: SimSettings, faults: Faults) -> None:
    """Serve until SIGINT or SIGTERM; print the URL, the model and the tokenizer, a line each.

    Raises:
        EngineError: The address cannot be used.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set if not faults.ignore_sigterm else lambda: None)
    if faults.orphan:
        print(f"orphan {leave_orphan()}", flush=True)
    cores, tokenizer = CorePool(settings, loop), SimTokenizer()
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
        server = await _listen(settings, api)
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


async def _listen(settings: SimSettings, api: Api) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(
            lambda: Connection(api), settings.host, settings.port, backlog=BACKLOG
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise EngineError(
            f"cannot listen on {settings.host}:{settings.port}: {reason}; give another --host or --port (0: a free one)"
        ) from error


def leave_orphan() -> int:
    """Start a process that sleeps for ever and is never stopped; return its id."""
    sleep = "import signal; signal.pause()"
    return subprocess.Popen([sys.executable, "-S", "-c", sleep], start_new_session=True).pid


def noise_seed() -> dict[str, int]:
    """Return the seed of the noise that the program which starts this server has set."""
    text = os.environ.get(START_SEED, "")
    if text and not text.isdecimal():
        raise BadInput(START_SEED, f"{text!r} is not a whole number", "unset it, or give a whole number")
    return {"noise_seed": int(text)} if text else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code: 0, 1 (it cannot start) or 2 (bad flag)."""
    # Requests leave no reference cycles; a full garbage collection would stop the engine for many steps.
    gc.freeze()
    garbage_collection.collect_rarely()
    try:
        uvloop.run(serve(*read(argv, noise_seed())))
    except StartFailed as failed:
        sys.stderr.write(log_of(str(failed)))
        return 1
    except (BadInput, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    return 0

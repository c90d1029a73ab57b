"""The simulator's process: listen, serve until told to stop."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence

import uvloop

from loadgen.engines.sim import settings
from loadgen.engines.sim.api import Api
from loadgen.engines.sim.connection import Connection
from loadgen.engines.sim.core import EngineCore
from loadgen.engines.sim.settings import SimSettings
from loadgen.engines.sim.tokenizer import SimTokenizer
from loadgen.errors import BadInput, EngineError

BACKLOG = 16384  # a load generator may open all its connections at once


async def serve(knobs: SimSettings) -> None:
    """Serve until SIGINT or SIGTERM; prints where it listens, then the model and the tokenizer, a line each.

    Raises:
        EngineError: The address cannot be had.
    """
    loop = asyncio.get_running_loop()
    core = EngineCore(knobs, loop)
    tokenizer = SimTokenizer()
    api = Api(knobs, core, tokenizer)
    try:
        server = await loop.create_server(lambda: Connection(api), knobs.host, knobs.port, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise EngineError(
            f"cannot listen on {knobs.host}:{knobs.port}: {reason}; give another --host or --port (0: a free one)"
        ) from error
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    port = server.sockets[0].getsockname()[1]
    print(f"listening on http://{knobs.host}:{port}")
    print(f"model {knobs.served_model_name}\ntokenizer {tokenizer.path}", flush=True)
    await stop.wait()
    # Open streams end here with the process, as a killed engine's do.
    server.close()
    core.close()


def main(argv: Sequence[str] | None = None, prog: str = "python -m loadgen.engines.sim") -> int:
    """Run the server from the command line; return the exit code: 0, 1 (cannot listen) or 2 (bad flag)."""
    flags = vars(settings.parser(prog).parse_args(argv))
    # Requests leave no reference cycles; a full collection would stop the engine for many steps.
    gc.freeze()
    gc.set_threshold(50_000)
    try:
        uvloop.run(serve(SimSettings(**flags)))
    except (BadInput, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    return 0

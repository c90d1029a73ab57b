"""Listening: what the processes of all test servers have in common."""

import argparse
import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable

from loadgen import machine
from loadgen.errors import LoadgenError

BACKLOG = 16384  # a load generator may open all its connections at once


def parser(module: str, description: str) -> argparse.ArgumentParser:
    """A command line for `python -m MODULE` with --host and --port, to which a server adds its own flags."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description, allow_abbrev=False)
    made.add_argument("--host", default="127.0.0.1", help="address to listen on; other machines reach 0.0.0.0")
    made.add_argument("--port", type=int, default=0, help="0: a free one")
    return made


async def serve(protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; prints where it listens.

    Raises:
        LoadgenError: The address cannot be had.
    """
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(protocol, host, port, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise LoadgenError(f"cannot listen on {host}:{port}: {reason}; give another --host or --port") from error
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on http://{shown}:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    server.close()


def run(protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> int:
    """Serve in this process, on uvloop, until told to stop; returns the exit code."""
    import uvloop

    machine.raise_open_files_limit()
    gc.freeze()
    gc.set_threshold(50_000)  # a full collection would stop every stream at once
    try:
        uvloop.run(serve(protocol, host, port))
    except LoadgenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0

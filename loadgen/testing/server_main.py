"""Server main: the command line and the serve loop that all test servers share."""

import argparse
import asyncio
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import ParamSpec

from loadgen.engines.sim.connection import listen
from loadgen.engines.sim.http1 import MAX_TOKENS
from loadgen.errors import BadInput, LoadgenError
from loadgen.util import garbage_collection, machine
from loadgen.util.argument_parser import OneLineParser, integer_within
from loadgen.util.terminal_text import printable

P = ParamSpec("P")


def command(serve: Callable[P, int]) -> Callable[P, int]:
    """Wrap a main function: a LoadgenError becomes one line on stderr and an exit code, 2 for
    bad input, else 1.
    """

    @functools.wraps(serve)
    def main(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return serve(*args, **kwargs)
        except LoadgenError as error:
            print(f"error: {printable(str(error))}", file=sys.stderr)
            return 2 if isinstance(error, BadInput) else 1

    return main


def parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser for `python -m MODULE` with --host and --port; a server adds its own
    flags.
    """
    flags = OneLineParser(prog=f"python -m {module}", description=description)
    flags.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all interfaces"
    )
    flags.add_argument(
        "--port", type=integer_within(0, 65535), default=0, help="port to listen on; 0: a free one"
    )
    return flags


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """Add the flag --tokens."""
    text = "tokens of an answer if the request does not set them (16)"
    parser.add_argument("--tokens", type=integer_within(1, MAX_TOKENS), default=16, help=text)


async def serve(
    protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, user: int | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; print the URL first.

    Args:
        protocol: Makes the protocol of a connection.
        host: The address.
        port: The port; 0: a free one.
        user: The process with which the server ends, too.

    Raises:
        LoadgenError: The address cannot be used.
    """
    loop = asyncio.get_running_loop()
    server = await listen(protocol, host, port)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if user is not None:
        try:
            loop.add_reader(os.pidfd_open(user), stop.set)
        except ProcessLookupError:
            stop.set()
        except (AttributeError, OSError):
            pass  # only Linux has it
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on http://{shown}:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    server.close()


def run(
    protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, user: int | None = None
) -> int:
    """Serve in this process, on uvloop, until SIGINT or SIGTERM; return the exit code.

    Args and errors are those of `serve`.
    """
    import uvloop

    machine.raise_open_files_limit()
    gc.freeze()
    garbage_collection.collect_rarely()
    uvloop.run(serve(protocol, host, port, user=user))
    return 0

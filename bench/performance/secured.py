"""A server of streams over TLS, for `tls.py`: every token is an event of its own, each written by
itself.

`python -m bench.performance.secured [--gap-ms MS] [--plain]` serves on a free port of loopback
until it is stopped. Its certificate is made anew each time, so that no client can verify it.
"""

import argparse
import asyncio
import ssl
import sys

import trustme
import uvloop

from bench.performance.grouped import MODEL as MODEL
from bench.performance.grouped import Connection
from loadgen.engines.sim.connection import listen
from loadgen.util import machine
from loadgen.util.argument_parser import number

HOST = "127.0.0.1"


async def serve(gap_s: float, context: ssl.SSLContext | None) -> None:
    """Serve until the process is terminated; print the URL first."""
    server = await listen(lambda: Connection(1, gap_s), HOST, 0, context)
    port = server.sockets[0].getsockname()[1]
    print(f"{'https' if context else 'http'}://{HOST}:{port}", flush=True)
    await asyncio.Event().wait()


def main() -> int:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.secured", description="Streams over TLS."
    )
    parser.add_argument(
        "--gap-ms", type=number, default=20.0, help="time between two tokens of a stream (20)"
    )
    parser.add_argument("--plain", action="store_true", help="serve without TLS")
    flags = parser.parse_args()
    context = None if flags.plain else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if context is not None:
        trustme.CA().issue_cert(HOST).configure_cert(context)
    machine.raise_open_files_limit()
    uvloop.run(serve(flags.gap_ms / 1e3, context))
    return 0


if __name__ == "__main__":
    sys.exit(main())

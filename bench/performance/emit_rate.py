"""How many token events a second one core can write: `python bench/performance/emit_rate.py
[STREAMS] [SECONDS]`.

A reader process receives and discards. The same run times bare send() of as many bytes, once from
Python and once from the write path itself with one raw piece, because only ratios within one run
mean anything on a shared machine. Rates are per CPU second of the writing process.
"""

import asyncio
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

import uvloop

from loadgen.engines.sim.emit import Stream, Words, emit

HEAD = (
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk",'
    b'"created":1700000000,"model":"sim","choices":[{"index":0,"delta":{"content":"'
)
TAIL = b'"},"logprobs":null,"finish_reason":null}]}\n\n'
WORDS = ["fen", "sorum", "telbrain", "aurdola"]
EVENT = b"%x\r\n%b sorum%b\r\n" % (len(HEAD) + 6 + len(TAIL), HEAD, TAIL)


def discard(port: int, streams: int) -> None:
    """Connect `streams` sockets and throw away what they receive, until the other side closes."""
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    poll = select.epoll()
    by_fd = {each.fileno(): each for each in sockets}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    buffer = bytearray(1 << 18)
    while by_fd:
        for fd, _ in poll.poll():
            if not by_fd[fd].recv_into(buffer):
                poll.unregister(fd)
                by_fd.pop(fd).close()


async def rate(seconds: float, write: Callable[[], int]) -> float:
    """Return the events per CPU second of calling `write`, which returns how many it wrote,
    again and again.
    """
    events, cpu, end = 0, time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        events += write()
        await asyncio.sleep(0)
    return events / (time.process_time() - cpu)


async def main(count: int, seconds: float) -> None:
    """Measure and print."""
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    reader = os.fork()
    if reader == 0:
        discard(listener.getsockname()[1], count)
        os._exit(0)
    transports, sockets = [], []
    for _ in range(count):
        accepted, _ = listener.accept()
        accepted.setblocking(False)
        transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, accepted)
        transports.append(transport)
        sockets.append(accepted.dup())
    words = Words(WORDS)
    streams = [
        Stream(transport, words, seed, HEAD, TAIL) for seed, transport in enumerate(transports)
    ]

    def emit_all() -> int:
        emit(streams)
        return count

    def write_raw() -> int:
        for stream in streams:
            stream.write(EVENT)
        return count

    def send_all() -> int:
        sent = 0
        for each in sockets:
            try:
                each.send(EVENT, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
                sent += 1
            except BlockingIOError:
                pass
        return sent

    try:
        for _ in range(3):
            emitted, raw, bare = [
                await rate(seconds, write) for write in (emit_all, write_raw, send_all)
            ]
            print(
                f"{count} streams, {len(EVENT)} bytes: emit {emitted:,.0f}/CPU s "
                f"({1e6 / emitted:.2f} us); one raw write each {1e6 / raw:.2f} us; socket.send "
                f"{1e6 / bare:.2f} us; emit/send {bare / emitted:.2f}"
            )
    finally:
        for transport, each in zip(transports, sockets, strict=True):
            transport.abort()
            each.close()
        await asyncio.sleep(0)
        os.kill(reader, signal.SIGTERM)
        listener.close()


if __name__ == "__main__":
    arguments = [float(each) for each in sys.argv[1:]]
    uvloop.run(
        main(int(arguments[0]) if arguments else 1000, arguments[1] if len(arguments) > 1 else 1.0)
    )

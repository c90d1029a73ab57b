"""Link: carries the packets between two namespaces, late, and not all of them.

It logs when it gave the client's kernel each byte that the server sent, in the order in which an
application can read them: a byte behind a missing one counts as given when the missing one is. A
segment that the kernel refused, since one that was sent later had come before, was not given.
"""

import argparse
import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from bench.network.namespaces import FAR_ADDRESS, NEAR_ADDRESS, enter
from loadgen.testing.process import LISTENING

NS_PER_MS = 1_000_000
SET_INTERFACE = 0x400454CA  # TUNSETIFF
TUN_WITHOUT_HEADER = 0x1001  # IFF_TUN | IFF_NO_PI
DEVICE = "link0"
MAX_PACKET = 65536
HALF, WHOLE = 1 << 31, 1 << 32  # of the sequence numbers
TCP = 6
SYN = 2
END_OF_OPTIONS, PADDING, TIMESTAMP = 0, 1, 8  # kinds of options in a TCP header


@dataclass
class Stream:
    """What one side of a connection has sent.

    Attributes:
        next: The sequence number of the first byte that has not been delivered in order.
        timestamp: The latest one of its segments so far.
        waiting: Segments behind a missing one, by their sequence numbers.
    """

    next: int
    timestamp: int = 0
    waiting: dict[int, bytes] = field(default_factory=dict)

    def deliver(self, sequence: int, data: bytes) -> bytes:
        """Take a segment, and return the bytes that an application can read since it came."""
        if len(data) > len(self.waiting.get(sequence, b"")):
            self.waiting[sequence] = data
        readable = b""
        while self.waiting:
            # the farthest behind first: what it repeats is cut off
            begin = min(self.waiting, key=self._distance)
            overlap = -self._distance(begin)
            if overlap < 0:
                break
            segment = self.waiting.pop(begin)[overlap:]
            readable += segment
            self.next = (self.next + len(segment)) % WHOLE
        return readable

    def _distance(self, sequence: int) -> int:
        return (sequence - self.next + HALF) % WHOLE - HALF


@dataclass(frozen=True)
class Segment:
    """A TCP segment.

    Attributes:
        port: The receiver's.
        sequence: The number of its first byte.
        timestamp: When it was sent, by the sender's clock (RFC 7323); 0: it does not say.
        is_first: Whether it opens a connection.
        data: Its bytes.
    """

    port: int
    sequence: int
    timestamp: int
    is_first: bool
    data: bytes

    @classmethod
    def of(cls, packet: bytes) -> "Segment":
        """Read an IPv4 packet."""
        tcp = packet[(packet[0] & 15) * 4 :]
        port, sequence = struct.unpack(">2xHI", tcp[:8])
        begin = (tcp[12] >> 4) * 4
        return cls(port, sequence, timestamp_in(tcp[20:begin]), bool(tcp[13] & SYN), tcp[begin:])


def timestamp_in(options: bytes) -> int:
    """Return the sender's timestamp in the options of a TCP header; 0: there is none."""
    while options and options[0] != END_OF_OPTIONS:
        if options[0] == TIMESTAMP:
            return int.from_bytes(options[2:6])
        options = options[1 if options[0] == PADDING else options[1] :]
    return 0


class Refusals:
    """Counts the segments that the kernel of the namespace in which it was made refused, since one
    that was sent later had come before (PAWS in RFC 7323).
    """

    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/net/netstat", os.O_RDONLY)
        self._count = self._counted()

    def grew(self) -> bool:
        """Return whether it refused any since this was asked before."""
        count, self._count = self._count, self._counted()
        return self._count != count

    def _counted(self) -> int:
        names, values = os.pread(self._file, MAX_PACKET, 0).split(b"\n")[:2]
        return int(values.split()[names.split().index(b"PAWSEstab")])


class Log:
    """Logs the bytes that the client can read, a line of JSON for each packet that brought any."""

    def __init__(self, file: TextIO, refusals: Refusals) -> None:
        self._file = file
        self._refusals = refusals
        self._streams: dict[int, Stream] = {}

    def add(self, packet: bytes, before_ns: int, after_ns: int) -> None:
        """Add a packet that was given to the client's kernel between two times."""
        segment = Segment.of(packet)
        if segment.is_first:
            self._streams[segment.port] = Stream((segment.sequence + 1) % WHOLE, segment.timestamp)
            self._write(segment.port, before_ns, after_ns, None)
        elif segment.port in self._streams:
            stream = self._streams[segment.port]
            if segment.timestamp < stream.timestamp and self._refusals.grew():
                return
            stream.timestamp = max(stream.timestamp, segment.timestamp)
            readable = stream.deliver(segment.sequence, segment.data) if segment.data else b""
            if readable:
                self._write(segment.port, before_ns, after_ns, readable.decode("latin-1"))

    def _write(self, port: int, before_ns: int, after_ns: int, data: str | None) -> None:
        self._file.write(json.dumps([port, before_ns, after_ns, data]) + "\n")


def interface(namespace: str, address: str) -> int:
    """Move this thread into a namespace, and return the descriptor of a new interface there."""
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", DEVICE.encode(), TUN_WITHOUT_HEADER)
    fcntl.ioctl(descriptor, SET_INTERFACE, request)
    subprocess.run(["ip", "address", "add", f"{address}/24", "dev", DEVICE], check=True)
    subprocess.run(["ip", "link", "set", DEVICE, "up"], check=True)
    return descriptor


def carry(near: int, far: int, log: Log, flags: argparse.Namespace) -> None:
    """Carry packets between two interfaces, for ever."""
    chance = random.Random(flags.seed)
    on_way: list[tuple[int, int, int, bytes]] = []
    number = 0
    other = {near: far, far: near}
    while True:
        wait_s = max(0, on_way[0][0] - time.monotonic_ns()) / 1e9 if on_way else None
        readable, _, _ = select.select([near, far], [], [], wait_s)
        for interface in readable:
            for packet in packets(interface):
                if chance.random() < flags.loss:
                    continue
                delay_ms = flags.delay_ms
                if chance.random() < flags.reorder:
                    delay_ms += chance.uniform(0, flags.reorder_ms)
                due_ns = time.monotonic_ns() + int(delay_ms * NS_PER_MS)
                number += 1
                heapq.heappush(on_way, (due_ns, number, other[interface], packet))
        while on_way and on_way[0][0] <= time.monotonic_ns():
            _, _, target, packet = heapq.heappop(on_way)
            before_ns = time.monotonic_ns()
            os.write(target, packet)
            if target == near:
                log.add(packet, before_ns, time.monotonic_ns())


def packets(interface: int) -> list[bytes]:
    """Read all TCP packets over IPv4 that wait at an interface."""
    waiting = []
    while True:
        try:
            packet = os.read(interface, MAX_PACKET)
        except BlockingIOError:
            return waiting
        if packet[0] >> 4 == 4 and packet[9] == TCP:
            waiting.append(packet)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the link until it is terminated."""
    parser = argparse.ArgumentParser("bench.network.link")
    parser.add_argument("--near", required=True, help="namespace of the client")
    parser.add_argument("--far", required=True, help="namespace of the server")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="delay of each packet")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets that are lost")
    parser.add_argument("--reorder", type=float, default=0.0, help="share that is further delayed")
    parser.add_argument("--reorder-ms", type=float, default=0.0, help="by so much at most")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is lost and delayed")
    parser.add_argument("--log", required=True, help="file of what the client can read")
    flags = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    far = interface(flags.far, FAR_ADDRESS)
    near = interface(flags.near, NEAR_ADDRESS)
    refusals = Refusals()
    print(f"{LISTENING}{FAR_ADDRESS}", flush=True)
    with open(flags.log, "w", buffering=1) as file:
        carry(near, far, Log(file, refusals), flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether the kernel stamps what arrives on a TCP connection."""

import contextlib
import socket
import struct
import sys
import time

from loadgen.cli.doctor.limit import Limit, judged

SO_TIMESTAMPING = 37  # of most processors, as in linux/socket.h; Python does not name it
RECEIVED_BY_SOFTWARE = (1 << 3) | (1 << 4)  # SOF_TIMESTAMPING_RX_SOFTWARE, SOF_TIMESTAMPING_SOFTWARE
ATTEMPTS, APART_S = 20, 0.01  # the kernel begins to stamp some time after it was asked for the first time


def limit() -> Limit:
    """Return whether a token has the kernel's time of its arrival, or the time at which loadgen reads it."""
    stamped = kernel_stamps()
    return judged(
        "arrival times",
        stamped,
        "stamped by the kernel" if stamped else "not stamped by the kernel",
        good="the time of a token does not depend on when loadgen reads it",
        bad="a token has the time at which loadgen reads it, and the client error is how late that may be",
        remedy="measure from Linux, and outside of sandboxes that have a network stack of their own",
    )


def kernel_stamps() -> bool:
    """Send a few bytes to this process, and look whether one of them comes with a stamp."""
    if sys.platform != "linux":
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=1) as receiver,
        server.accept()[0] as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RECEIVED_BY_SOFTWARE)
        return any(_has_stamp(sender, receiver) for _ in range(ATTEMPTS))
    return False


def _has_stamp(sender: socket.socket, receiver: socket.socket) -> bool:
    sender.send(b"x")
    _, ancillary, _, _ = receiver.recvmsg(1, 256)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING) and any(struct.unpack_from("=qq", data)):
            return True
    time.sleep(APART_S)
    return False

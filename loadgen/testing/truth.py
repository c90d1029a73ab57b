"""Truth: the times at which the metronome wrote each token.

The server keeps a `Ledger`; a test reads it as `Truth` from the path /truth, as a numpy .npz file.
"""

import io
import time
import urllib.request
from array import array
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LATE_NS = 1_000_000
LATE_SHARE = 0.01
FETCH_S = 60.0

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """The times of all answers since the last reset, as CLOCK_MONOTONIC ns of the server's machine.

    Attributes:
        id: X-Request-Id of each request, in the order in which the answers ended; bytes, shape
            (requests,).
        arrival_ns: When the last byte of each request was read, shape (requests,).
        starts: Index of each request's first token; request i has the tokens starts[i] to starts[i
            + 1]; shape (requests + 1,).
        plan_ns: When each token was due, shape (tokens,).
        write_ns: When each token was given to its socket, read just before, 0: never; shape
            (tokens,).
        written_ns: When the socket had taken it, read just after, 0: never; shape (tokens,).
        held_back: Number of writes that the socket did not accept at once, because the client did
            not read.
        busy_share: CPU time of the server's event loop since the last reset, as a share of wall
            time.
    """

    id: NDArray[np.bytes_]
    arrival_ns: Int64s
    starts: Int64s
    plan_ns: Int64s
    write_ns: Int64s
    written_ns: Int64s
    held_back: int
    busy_share: float

    @classmethod
    def fetch(cls, url: str) -> "Truth":
        """Read the truth of the server at `url`; this blocks, and keeps the server busy for a
        while.

        Raises:
            OSError: The server does not answer.
        """
        with urllib.request.urlopen(f"{url}/truth", timeout=FETCH_S) as reply:
            file = np.load(io.BytesIO(reply.read()), allow_pickle=False)
        held_back, busy_share = file["about"].tolist()
        columns = {
            name: file[name]
            for name in ("id", "arrival_ns", "starts", "plan_ns", "write_ns", "written_ns")
        }
        return cls(**columns, held_back=int(held_back), busy_share=busy_share)

    @staticmethod
    def forget(url: str) -> None:
        """Reset the truth of the server at `url`; answers that have not ended will be added when
        they end.
        """
        urllib.request.urlopen(
            urllib.request.Request(f"{url}/truth", method="DELETE"), timeout=FETCH_S
        ).close()

    @property
    def number(self) -> Int64s:
        """The number at the end of each request's id: its index within a run of loadgen; shape
        (requests,).
        """
        return np.array(
            [int(request_id.rpartition(b"-")[2]) for request_id in self.id.tolist()], dtype=np.int64
        )

    @cached_property
    def late_ns(self) -> Int64s:
        """Lateness of each written token, ns; shape (tokens written,)."""
        written = self.write_ns > 0
        return (self.write_ns - self.plan_ns)[written]

    @property
    def overloaded(self) -> bool:
        """Whether more than 1 % of the tokens were over 1 ms late: measured latencies are then
        those of the server.
        """
        return bool(len(self.late_ns)) and float(np.mean(self.late_ns > LATE_NS)) > LATE_SHARE


class Ledger:
    """The server's record of its answers, from which `Truth` is read."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Remove all answers."""
        self._ids: list[bytes] = []
        self._arrivals = array("q")
        self._counts = array("q")
        self._plan = bytearray()
        self._writes = bytearray()
        self._written = bytearray()
        self._held_back = 0
        self._since = time.monotonic(), time.thread_time()

    def add(
        self,
        request_id: bytes,
        arrival_ns: int,
        plan_ns: Int64s,
        write_ns: Int64s,
        written_ns: Int64s,
        held_back: int,
    ) -> None:
        """Add an answer that has ended.

        Args:
            request_id: X-Request-Id of the request.
            arrival_ns: When its last byte was read.
            plan_ns, write_ns, written_ns: Times of its tokens, as in `Truth`; shape (tokens,).
            held_back: Number of writes that the socket did not accept at once.
        """
        self._ids.append(request_id)
        self._arrivals.append(arrival_ns)
        self._counts.append(len(plan_ns))
        self._plan += plan_ns.data
        self._writes += write_ns.data
        self._written += written_ns.data
        self._held_back += held_back

    def to_npz(self) -> bytes:
        """Return the file that `Truth.fetch` reads."""
        wall_s = time.monotonic() - self._since[0]
        cpu_s = time.thread_time() - self._since[1]
        file = io.BytesIO()
        np.savez(
            file,
            id=np.array(self._ids, dtype=np.bytes_),
            arrival_ns=np.array(self._arrivals, dtype=np.int64),
            starts=np.concatenate(([0], np.cumsum(np.array(self._counts, dtype=np.int64)))),
            plan_ns=np.frombuffer(bytes(self._plan), dtype=np.int64),
            write_ns=np.frombuffer(bytes(self._writes), dtype=np.int64),
            written_ns=np.frombuffer(bytes(self._written), dtype=np.int64),
            about=np.array([self._held_back, cpu_s / wall_s]),
        )
        return file.getvalue()

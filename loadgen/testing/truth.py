"""Truth: what a server that keeps time knows of the tokens it wrote.

`Ledger` is kept by the server; `Truth` is what a test reads from its /truth. They travel as a numpy .npz.
"""

import io
import time
import urllib.request
from array import array
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LATE_NS, LATE_SHARE = 1_000_000, 0.01
FETCH_S = 60.0

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """What the server knows. All times are CLOCK_MONOTONIC ns of the machine it runs on.

    Attributes:
        id: X-Request-Id of each request, in the order in which their answers ended; bytes, shape (requests,).
        arrival_ns: When the last byte of each request was read, shape (requests,).
        starts: Where the tokens of request i begin: they are starts[i] to starts[i + 1]; shape (requests + 1,).
        plan_ns: When each token was due, shape (tokens,).
        write_ns: When each token was given to its socket, 0 if it never was; shape (tokens,).
        held_back: Writes that the socket did not take at once, because the client did not read.
        busy_share: Share of the time, since the last reset, that the server's loop had a processor.
    """

    id: NDArray[np.bytes_]
    arrival_ns: Int64s
    starts: Int64s
    plan_ns: Int64s
    write_ns: Int64s
    held_back: int
    busy_share: float

    @classmethod
    def fetch(cls, url: str) -> "Truth":
        """Read it from the server at `url`; blocks, and keeps the server busy for a while."""
        with urllib.request.urlopen(f"{url}/truth", timeout=FETCH_S) as reply:
            found = np.load(io.BytesIO(reply.read()), allow_pickle=False)
        held_back, busy_share = found["about"].tolist()
        columns = {name: found[name] for name in ("id", "arrival_ns", "starts", "plan_ns", "write_ns")}
        return cls(**columns, held_back=int(held_back), busy_share=busy_share)

    @staticmethod
    def forget(url: str) -> None:
        """Let the server at `url` begin anew; answers under way will still be kept when they end."""
        urllib.request.urlopen(urllib.request.Request(f"{url}/truth", method="DELETE"), timeout=FETCH_S).close()

    @property
    def number(self) -> Int64s:
        """The digits at the end of each request's id: its number within a run of loadgen; shape (requests,)."""
        return np.array([int(each.rpartition(b"-")[2]) for each in self.id.tolist()], dtype=np.int64)

    @cached_property
    def late_ns(self) -> Int64s:
        """How late each token that was written was written; shape (tokens written,)."""
        written = self.write_ns > 0
        return (self.write_ns - self.plan_ns)[written]

    @property
    def overloaded(self) -> bool:
        """Whether more than 1 % of the tokens were written over 1 ms late: what was seen is then the server's doing."""
        return bool(len(self.late_ns)) and float(np.mean(self.late_ns > LATE_NS)) > LATE_SHARE


class Ledger:
    """What a server notes down for `Truth`."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._ids: list[bytes] = []
        self._arrivals, self._counts = array("q"), array("q")
        self._plan, self._writes = bytearray(), bytearray()
        self._held_back = 0
        self._since = time.monotonic(), time.thread_time()

    def add(self, request_id: bytes, arrival_ns: int, plan_ns: Int64s, write_ns: Int64s, held_back: int) -> None:
        """Note down an answer that has ended."""
        self._ids.append(request_id)
        self._arrivals.append(arrival_ns)
        self._counts.append(len(plan_ns))
        self._plan += plan_ns.data
        self._writes += write_ns.data
        self._held_back += held_back

    def to_npz(self) -> bytes:
        """What `Truth.fetch` reads."""
        wall_s, cpu_s = time.monotonic() - self._since[0], time.thread_time() - self._since[1]
        file = io.BytesIO()
        np.savez(
            file,
            id=np.array(self._ids, dtype=np.bytes_),
            arrival_ns=np.array(self._arrivals, dtype=np.int64),
            starts=np.concatenate(([0], np.cumsum(np.array(self._counts, dtype=np.int64)))),
            plan_ns=np.frombuffer(bytes(self._plan), dtype=np.int64),
            write_ns=np.frombuffer(bytes(self._writes), dtype=np.int64),
            about=np.array([self._held_back, cpu_s / wall_s]),
        )
        return file.getvalue()

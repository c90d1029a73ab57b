"""Trial: runs over one network, each printed figure beside the same figure of the times at which
the client could read the tokens.
"""

import asyncio
import contextlib
import dataclasses
import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import uvloop

from bench.accuracy.conditions import Condition
from bench.accuracy.judging import Claim, claims
from bench.accuracy.measuring import TOLERANCE_NS, compared
from bench.network.conditions import Network
from bench.network.namespaces import FAR_ADDRESS, enter, set_receive_buffer, two_hosts
from bench.network.readable import with_readable_times
from loadgen.testing.process import Process, started
from tests.helpers.source import ROOT

RATE, SECONDS, TOKENS = 50, 1.0, 20
PLAN = {"first_ms": 20.0, "gap_ms": 10.0}


@dataclasses.dataclass(frozen=True)
class Trial:
    """What one run claimed.

    Attributes:
        claims: Every printed mean and percentile.
        tokens: Tokens that came.
        inexact: Those of them that the client does not call exact.
        reordered: Those of them that came behind a missing segment, by the client's knowledge.
        early: Those of them that the client says it had before they were readable.
        late: Those of them that were readable before the client says they can have been.
        verdict: The run's.
    """

    claims: list[Claim]
    tokens: int
    inexact: int
    reordered: int
    early: int
    late: int
    verdict: str

    @property
    def broken(self) -> list[Claim]:
        """The claims whose client error does not cover the true one."""
        return [claim for claim in self.claims if not claim.holds]


def trial(server: Process, log: Path, beside: Condition) -> Trial:
    """Measure for a second, as the command does, from the namespace of this process."""
    start = log.stat().st_size
    load = {"request_rate": RATE, "duration": SECONDS}
    run = uvloop.run(
        compared(server, tokens=TOKENS, plan=PLAN, may_wait=True, beside=beside, **load)
    )
    run = dataclasses.replace(run, truth=with_readable_times(run.truth, log, start))
    counters = run.result.snapshot.counters
    return Trial(
        claims(run),
        len(run.stamps_ns),
        counters["inexact_events"],
        counters["reordered_events"],
        int(np.sum(run.stamps_ns + TOLERANCE_NS < run.write_ns)),
        int(np.sum(run.earliest_ns - TOLERANCE_NS > run.written_ns)),
        str(run.result.verdict),
    )


async def trials(network: Network, runs: int) -> list[Trial]:
    """Measure again and again over one network.

    Raises:
        NoNamespaces: This system or user has no network namespaces.
    """
    loop, fresh = asyncio.get_running_loop(), multiprocessing.get_context("spawn")
    with two_hosts() as (near, far), tempfile.TemporaryDirectory() as folder:
        if network.receive_buffer:
            set_receive_buffer(near, network.receive_buffer)
        log = Path(folder) / "readable"
        with (
            connected(network, near, far, log) as server,
            ProcessPoolExecutor(1, fresh, enter, (near,)) as client,
        ):
            arguments = server, log, network.beside
            return [await loop.run_in_executor(client, trial, *arguments) for _ in range(runs)]


@contextlib.contextmanager
def connected(network: Network, near: str, far: str, log: Path) -> Iterator[Process]:
    """Run a link, and a metronome behind it."""
    metronome = "loadgen.testing.metronome", f"--text-bytes={network.text_bytes}"
    with linked(network, near, far, log), behind(far, *metronome) as server:
        yield server


@contextlib.contextmanager
def linked(network: Network, near: str, far: str, log: Path) -> Iterator[None]:
    """Run a link between two namespaces."""
    flags = {
        "near": near,
        "far": far,
        "delay-ms": network.round_trip_ms / 2,
        "loss": network.loss,
        "reorder": network.reorder,
        "reorder-ms": network.reorder_ms,
        "log": log,
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    with started("bench.network.link", *words, folder=ROOT):
        yield


@contextlib.contextmanager
def behind(far: str, module: str, *flags: str) -> Iterator[Process]:
    """Run a server in the namespace behind a link."""
    words = far, module, f"--host={FAR_ADDRESS}", *flags
    with started("bench.network.far_server", *words, folder=ROOT) as server:
        yield server

"""Trial: one run of one peer against a metronome, which knows what came when and what it wrote
when.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.engines.environments import made
from bench.peers import recipes
from bench.peers.meter import Metered, metered
from bench.peers.peer import PERCENTILES, Peer, Reported, Task
from bench.performance.load import Load
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from loadgen.util import machine
from tests.helpers.command_line import environment

MAX_S = 500.0
NS_PER_MS, NS_PER_S = 1e6, 1e9


class Failed(Exception):
    """A peer that did not carry its task out."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the server saw and did.

    Attributes:
        answers: How many were asked for and taken whole.
        first_ns: When the first request arrived, CLOCK_MONOTONIC.
        achieved_rps: Requests a second between the first and the last.
        late_max_ms: The most that an arrival was behind constant arrivals from the first one on.
        times_ms: The true "ttft" (from arrival), "itl" and "tpot": percentiles, in ms.
        overloaded: Whether the server itself fell behind its plan, so that latencies are its doing.
    """

    answers: int
    first_ns: int
    achieved_rps: float
    late_max_ms: float
    times_ms: Mapping[str, Mapping[int, float]]
    overloaded: bool

    @classmethod
    def of(cls, truth: Truth, load: Load) -> "Served":
        """Make it of what the server knows.

        Raises:
            Failed: It was not asked for two answers of such a length.
        """
        asked = np.flatnonzero(np.diff(truth.starts) == load.tokens)
        writes = truth.write_ns[truth.starts[asked][:, None] + np.arange(load.tokens)]
        taken = writes.all(axis=1)
        asked, writes = asked[taken], writes[taken]
        if len(asked) < 2:
            raise Failed(
                f"{len(asked)} answers of {load.tokens} tokens were asked for and taken whole"
            )
        arrivals = np.sort(truth.arrival_ns[asked])
        plan = arrivals[0] + np.arange(len(asked)) * NS_PER_S / load.rate
        gaps = np.diff(writes, axis=1)
        return cls(
            len(asked),
            int(arrivals[0]),
            (len(asked) - 1) / float(arrivals[-1] - arrivals[0]) * NS_PER_S,
            float(np.max(arrivals - plan)) / NS_PER_MS,
            {
                "ttft": _percentiles(writes[:, 0] - truth.arrival_ns[asked]),
                "itl": _percentiles(gaps.ravel()),
                "tpot": _percentiles(gaps.mean(axis=1)),
            },
            truth.overloaded,
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One run.

    Attributes:
        peer: Its name.
        load: What was asked.
        cost: Of all its processes.
        others_s: Processor time of everybody but the peer and the server meanwhile.
        served: What the server knows.
        reported: What the peer says.
        poisson: Whether its arrivals were Poisson's, which are behind no constant schedule.
    """

    peer: str
    load: Load
    cost: Metered
    others_s: float
    served: Served
    reported: Reported
    poisson: bool

    @property
    def first_request_s(self) -> float:
        """From the command to its first request."""
        return (self.served.first_ns - self.cost.began_ns) / NS_PER_S


def programs(peer: Peer) -> Path:
    """Of the peer's environment, which is made if it is not there.

    Raises:
        CannotBeMade: The package index does not have what it needs.
    """
    return made(peer.recipe, recipes.FOLDER) if peer.recipe else Path()


def tried(peer: Peer, load: Load, server: Process, tokenizer: Path, folder: Path) -> Trial:
    """Run a peer once; `folder` is empty and keeps what it writes.

    Raises:
        Failed: It ended otherwise than well, or asked for something else.
    """
    Truth.forget(server.url)
    command = peer.command(Task(server.url, load, tokenizer, folder, programs(peer)))
    wanted = {name: value for name, value in (environment() | dict(peer.env)).items() if value}
    before_s = machine.process_cpu_s(server.pid)
    cost, said = metered(command, folder=folder, env=wanted, timeout_s=MAX_S)
    others_s = max(0.0, cost.elsewhere_s - (machine.process_cpu_s(server.pid) - before_s))
    if cost.code:
        raise Failed(f"{peer.name} ended with {cost.code}: {said.strip()[-2000:]}")
    served = Served.of(Truth.fetch(server.url), load)
    reported = whole(peer.report(folder, said), served, load)
    return Trial(peer.name, load, cost, others_s, served, reported, peer.poisson)


def whole(reported: Reported, served: Served, load: Load) -> Reported:
    """A report that says first of all what is missing: of the answers that were to be asked for,
    or of the tokens.
    """
    sent = served.answers * load.tokens
    missing = (
        [f"asked for {served.answers:,} of {load.count:,} answers"]
        if served.answers != load.count
        else []
    )
    missing += (
        [f"counted {reported.tokens:,} of {sent:,} tokens"] if reported.tokens != sent else []
    )
    return dataclasses.replace(reported, says="; ".join([*missing, *filter(None, [reported.says])]))


def _percentiles(times_ns: NDArray[np.float64]) -> dict[int, float]:
    return dict(
        zip(PERCENTILES, (np.percentile(times_ns, PERCENTILES) / NS_PER_MS).tolist(), strict=True)
    )

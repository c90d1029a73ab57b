"""Trials that nobody ran, for tests of what is made of them."""

from collections.abc import Mapping

from bench.peers import compare_peers
from bench.peers.meter import Metered
from bench.peers.peer import METRICS, Reported
from bench.peers.trial import Served, Trial

LOADS = {load.name: load for load in compare_peers.LOADS}
TRUE: Mapping[str, Mapping[int, float]] = {name: {50: 20.0, 99: 20.4} for name in METRICS}


def trial(
    load: str = "W1",
    *,
    peer: str = "some",
    cpu_s: float = 1.0,
    others_s: float = 0.0,
    says: str = "",
    told: Mapping[str, Mapping[int, float]] = TRUE,
    measuring_mb: float | None = None,
    poisson: bool = False,
    overloaded: bool = False,
) -> Trial:
    """A trial of 3 processes that sent its first request half a second after its start."""
    asked = LOADS[load]
    return Trial(
        peer,
        asked,
        Metered(0, 12.0, cpu_s, others_s, 50.0, 80.0, 3, 0, 0),
        others_s,
        Served(asked.count, 500_000_000, float(asked.rate), 1.5, TRUE, overloaded),
        Reported(asked.count * asked.tokens, told, says, measuring_mb),
        poisson,
    )

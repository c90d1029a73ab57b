"""Costs: what a peer costs by request and by token, from its trials under four loads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.peers.quiet import median
from bench.peers.trial import Trial

US_PER_S = 1e6


@dataclass(frozen=True)
class Costs:
    """Of one peer.

    Attributes:
        trials: Of each load, by the load's name: S is the start-up, W1 has long answers, W2 short
            ones, W3 is heavy.
    """

    trials: Mapping[str, Sequence[Trial]]

    @property
    def startup_s(self) -> float | None:
        """Processor time of a run of a few requests, which is what a run costs before it
        measures anything.
        """
        return self.cpu_s("S")

    @property
    def first_request_s(self) -> float | None:
        """From the command to the first request of such a run."""
        return median(self.trials.get("S", ()), lambda trial: trial.first_request_s)

    def cpu_s(self, load: str) -> float | None:
        """Processor time of a run, all its processes."""
        return median(self.trials.get(load, ()), lambda trial: trial.cost.cpu_s)

    def us_per_token(self, load: str) -> float | None:
        """Microseconds by token, start-up taken off and everything else in."""
        return self._each(load, lambda trial: trial.served.answers * trial.load.tokens)

    def us_per_request(self, load: str) -> float | None:
        """Microseconds by request, start-up taken off and everything else in."""
        return self._each(load, lambda trial: trial.served.answers)

    @property
    def fit(self) -> tuple[float, float] | None:
        """Microseconds by request and by token event, from W1 and W2; cost is taken to be
        linear.
        """
        long, short = self.us_per_request("W1"), self.us_per_request("W2")
        if long is None or short is None:
            return None
        tokens = {name: self.trials[name][0].load.tokens for name in ("W1", "W2")}
        event = (long - short) / (tokens["W1"] - tokens["W2"])
        return short - event * tokens["W2"], event

    def _each(self, load: str, count: Callable[[Trial], int]) -> float | None:
        startup_s = self.startup_s
        if startup_s is None:
            return None
        return median(
            self.trials.get(load, ()),
            lambda trial: (trial.cost.cpu_s - startup_s) / count(trial) * US_PER_S,
        )

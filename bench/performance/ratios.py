"""Ratios: what clients cost by request and by token, and how many times one costs what another
does.
"""

from collections.abc import Callable, Sequence

from bench.performance.sample import Sample

Cost = Callable[[str, int], float | None]  # of a client in a round


class Costs:
    """The samples of a bench, seen as costs."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = {
            (sample.client, sample.load.name, sample.round): sample for sample in samples
        }
        self.rounds = sorted({sample.round for sample in samples})

    def sample(self, load: str) -> Callable[[str, int], Sample | None]:
        """The sample of a client in a round under this load; None where there is none."""
        return lambda client, number: self._samples.get((client, load, number))

    def by_token(self, load: str) -> Cost:
        """Microseconds a token, all in."""
        return self._each(load, lambda sample: sample.us_per_token)

    def by_request(self, load: str) -> Cost:
        """Microseconds a request, all in."""
        return self._each(load, lambda sample: sample.us_per_request)

    def tree(self, load: str) -> Cost:
        """Seconds of all the client's processes, start-up and report included."""
        return self._each(load, lambda sample: sample.around.tree_cpu_s)

    def over_rounds(self, cost: Cost, client: str) -> list[float]:
        """A client's cost in every round in which it took part."""
        return [value for number in self.rounds if (value := cost(client, number)) is not None]

    def ratio(self, cost: Cost, client: str, other: str) -> list[float]:
        """How many times as much as `other` a client costs, in every round that has both."""
        pairs = [(cost(client, number), cost(other, number)) for number in self.rounds]
        return [a / b for a, b in pairs if a is not None and b]

    def _each(self, load: str, part: Callable[[Sample], float]) -> Cost:
        def cost(client: str, number: int) -> float | None:
            sample = self.sample(load)(client, number)
            return part(sample) if sample else None

        return cost

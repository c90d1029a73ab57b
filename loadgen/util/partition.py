"""Partition of a run: which of its sessions one worker sends."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    """Every `count`-th session (or single request) of the run from the `index`-th on, 0 <= index < count."""

    index: int = 0
    count: int = 1

    def split(self, index: int, count: int) -> "Partition":
        """Return the `index`-th of `count` equal parts of this partition, as a partition of the run."""
        return Partition(self.index + self.count * index, self.count * count)

    def share(self, total: int) -> int:
        """Return how many of `total` things fall to it; over all partitions the shares add up."""
        return len(range(self.index, total, self.count))


WHOLE = Partition()

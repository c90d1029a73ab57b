"""Partition of the requests of a run: the part that one of several workers carries out."""

from msgspec import Struct


class Partition(Struct, frozen=True):
    """Every `count`-th session (or single request) of a run, starting with number `index`.

    Attributes:
        index: 0 <= index < count.
        count: How many partitions the run has.
    """

    index: int = 0
    count: int = 1

    def split(self, index: int, count: int) -> "Partition":
        """Split this partition into `count` equal parts, and return part `index` as a partition
        of the run.
        """
        return Partition(self.index + self.count * index, self.count * count)

    def share(self, total: int) -> int:
        """Return how many of `total` items belong to this partition.

        The shares of all partitions add up to `total`.
        """
        return len(range(self.index, total, self.count))


WHOLE = Partition()

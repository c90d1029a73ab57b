"""Partitions of a run add up to it, also when partitioned again."""

import itertools

import pytest

from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.arrivals import Schedule


@pytest.mark.parametrize("of", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 100])
def test_shares_add_up_and_differ_by_one(of, count):
    shares = [Partition(number, of).share(count) for number in range(of)]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1


def test_share_is_the_size_of_a_partition():
    schedule = Schedule.burst(11)
    for number in range(4):
        assert len(schedule.stripe(number, 4).numbers) == Partition(number, 4).share(11)


@pytest.mark.parametrize(("nodes", "workers"), [(1, 3), (2, 1), (2, 3), (3, 2)])
def test_split_partitions_cover_the_run(nodes, workers):
    pairs = itertools.product(range(nodes), range(workers))
    parts = [WHOLE.split(node, nodes).split(worker, workers) for node, worker in pairs]
    assert sorted(part.index for part in parts) == list(range(nodes * workers))
    assert {part.count for part in parts} == {nodes * workers}
    schedule = Schedule.burst(25)
    for stripe in (WHOLE.split(node, nodes) for node in range(nodes)):
        own = [stripe.split(worker, workers) for worker in range(workers)]
        indices = [
            index for part in own for index in schedule.stripe(part.index, part.count).numbers
        ]
        assert sorted(indices) == list(schedule.stripe(stripe.index, stripe.count).numbers)
    node = WHOLE.split(0, nodes)
    assert sum(node.split(worker, workers).share(25) for worker in range(workers)) == node.share(25)

"""Orders of records, as the package `datasets` and Python's `random` shuffle them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

BUFFER = 1000  # records that `datasets` shuffles at a time when it streams

T = TypeVar("T")


def shuffled_files(names: Sequence[str], seed: int) -> list[str]:
    """Return the files of a split in the order in which `IterableDataset.shuffle(seed)` opens them."""
    found = list(names)
    np.random.default_rng(seed).shuffle(found)
    return found


def shuffled_by_buffer(records: Iterable[T], seed: int) -> Iterator[T]:
    """Yield the records of a file in the order of `IterableDataset.shuffle(seed)` of `datasets` 5.

    A full buffer is shuffled, and half of it yielded. Fewer records than BUFFER have this order in all its releases.
    The records of several files are mixed beforehand by `datasets` 5, and are not by earlier releases.
    """
    random_numbers, buffer = np.random.default_rng(seed), list[T]()
    for record in records:
        buffer.append(record)
        if len(buffer) == BUFFER:
            order = random_numbers.permutation(BUFFER).tolist()
            yield from (buffer[number] for number in order[: BUFFER // 2])
            buffer = [buffer[number] for number in order[BUFFER // 2 :]]
    yield from (buffer[number] for number in random_numbers.permutation(len(buffer)).tolist())


def shuffled_list(records: Iterable[T], seed: int) -> list[T]:
    """Return records in the order of `random.shuffle` after `random.seed(seed)`."""
    found = list(records)
    random.Random(seed).shuffle(found)
    return found

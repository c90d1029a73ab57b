"""Preparing: making the requests of a run, in a process that has ended before the clock starts.

`python -m loadgen.preparing` reads one message, an Order, and answers with messages: the number of requests
made so far, and at the end None, or the error that stopped it.
"""

import errno
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen import messages, requests
from loadgen.errors import BadInput, LoadgenError
from loadgen.overhead import FIELD, Overhead
from loadgen.prompts import Dataset, Prompt
from loadgen.settings import RunSettings
from loadgen.target import Target

Origin = Callable[[], dict[str, Any]]
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Order:
    """Which requests are wanted, of which shape, how many, and in which folder."""

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    overhead: Overhead | None = None  # what the server adds to a prompt, where it is known beforehand


def prepare(order: Order, dataset: Dataset | None = None, progress: Callable[[int], None] = lambda done: None) -> None:
    """Write the requests of an order, from `dataset` or from the one its settings name.

    Raises:
        BadInput: The data set cannot be made, or there is no room for the requests.
    """
    prompts, origin = _own(order, dataset) if dataset else _named(order)
    try:
        requests.write(order.folder, prompts, order.target.body, origin, order.count, progress)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        problem = f"no room for {order.count} requests in {order.folder.parent} ({error.strerror})"
        raise BadInput("TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts") from error


def _own(order: Order, dataset: Dataset) -> tuple[Iterator[Prompt], Origin]:
    """The prompts of a caller's data set, which says itself what it knows of the server's count."""
    if order.settings.input_len_counts == "server":
        raise BadInput(FIELD, "a data set of your own has the length that it has", "leave it out")
    return dataset.prompts(order.count), dataset.provenance


def _named(order: Order) -> tuple[Iterator[Prompt], Origin]:
    """The prompts of the data set that the settings name, with what the server will count of each."""
    from loadgen.datasets import create
    from loadgen.datasets.counting import Counting

    found = create(order.settings)
    counting = Counting.of(found, order.settings, order.target, order.overhead)
    dataset = counting.fitted(found, order.settings)
    return counting.counted(dataset.prompts(order.count)), lambda: dataset.provenance() | counting.provenance()


def main() -> None:
    """Carry out the order on standard input."""
    order = messages.decode(sys.stdin.buffer.readline())
    say = sys.stdout.buffer

    def tell(message: object) -> None:
        say.write(messages.encode(message))
        say.flush()

    try:
        prepare(order, progress=tell)
    except LoadgenError as error:
        tell(error)
    else:
        tell(None)


if __name__ == "__main__":
    main()

"""Preparing: making the requests of a run, in a process that has ended before the clock starts.

`python -m loadgen.preparing` reads one message, an Order, and answers with messages: the number of requests
made so far, and at the end None, or the error that stopped it.
"""

import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadgen import messages, requests
from loadgen.errors import BadInput, LoadgenError
from loadgen.prompts import Dataset, Sessions, Timed
from loadgen.settings import RunSettings, is_closed_loop
from loadgen.target import Target

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Order:
    """Which requests are wanted, of which shape, how many as far as that is known, and in which folder."""

    settings: RunSettings
    target: Target
    count: int
    folder: Path


def prepare(order: Order, dataset: Dataset | None = None, progress: Callable[[int], None] = lambda done: None) -> None:
    """Write the requests of an order, from `dataset` or from the one its settings name.

    Raises:
        BadInput: There is no room for them.
    """
    if dataset is None:
        from loadgen.datasets import cache

        dataset = cache.prepared(order.settings)
    count, of_sessions = _how_many(order, dataset)
    prompts = dataset.sessions(count) if of_sessions else dataset.prompts(count)  # type: ignore[attr-defined]
    try:
        write = requests.write
        write(order.folder, prompts, order.target.body, dataset.provenance, count, progress, of_sessions=of_sessions)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        problem = f"no room for {count} requests in {order.folder.parent} ({error.strerror})"
        raise BadInput("TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts") from error


def _how_many(order: Order, dataset: Dataset) -> tuple[int, bool]:
    """How many prompts to make, or (True) sessions: as many as begin, where time alone bounds the run."""
    settings = order.settings
    if isinstance(dataset, Timed):
        return settings.num_prompts or dataset.requests, False
    if not isinstance(dataset, Sessions):
        return order.count, False
    if settings.num_prompts is not None:
        return settings.num_prompts, False
    return order.count, settings.duration is not None and not is_closed_loop(settings)


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

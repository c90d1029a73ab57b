"""Preparing: making the requests of a run, in a process that has ended before the clock starts.

`python -m loadgen.preparing` reads one message, an Order, and answers with messages: the number of requests
made so far, and at the end None, or the error that stopped it.
"""

import errno
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadgen import logs, messages, requests
from loadgen.errors import BadInput, LoadgenError
from loadgen.overhead import FIELD, Overhead
from loadgen.prompts import Dataset, Prompt, Sessions, Timed
from loadgen.settings import RunSettings, is_closed_loop
from loadgen.target import Target

Origin = Callable[[], dict[str, Any]]
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Order:
    """Which requests are wanted, of which shape, how many as far as that is known, and in which folder."""

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    overhead: Overhead | None = None  # what the server adds to a prompt, where it is known beforehand


@dataclass(frozen=True)
class Asked:
    """The prompts of a data set, with what the server is expected to count of each.

    Attributes:
        prompts: Each of them once.
        origin: Called when they are through: where they come from, as JSON.
        count: How many there are to be, of sessions or of prompts.
        of_sessions: Whether it is sessions, whatever the number of their turns.
    """

    prompts: Iterator[Prompt]
    origin: Origin
    count: int
    of_sessions: bool = False

    @classmethod
    def of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "Asked":
        """The prompts of a caller's data set, which says itself what it knows of the server's counts.

        Args:
            dataset: Whose.
            settings: Of the run.
            count: How many are due, as far as that is known beforehand.

        Raises:
            BadInput: The settings want prompts made to the server's measure.
        """
        if settings.input_len_counts == "server":
            raise BadInput(FIELD, "a data set of your own has the length that it has", "leave it out")
        return cls._of(dataset, settings, count)

    @classmethod
    def named(
        cls,
        settings: RunSettings,
        target: Target,
        count: int,
        overhead: Overhead | None = None,
        *,
        asks: bool = True,
    ) -> "Asked":
        """The prompts of the data set that the settings name.

        Args:
            settings: Of the run.
            target: Who will be asked.
            count: How many are due, as far as that is known beforehand.
            overhead: What the server adds to a prompt, where that is known beforehand.
            asks: Whether the server may be asked for it.

        Raises:
            BadInput: The settings cannot be met.
        """
        from loadgen.datasets import cache
        from loadgen.datasets.counting import Counting

        found = cache.prepared(settings)
        counting = Counting.of(found, settings, target, overhead, asks=asks)
        own = cls._of(counting.fitted(found, settings), settings, count)

        def origin() -> dict[str, Any]:
            return own.origin() | counting.provenance()

        return replace(own, prompts=counting.counted(own.prompts), origin=origin)

    @classmethod
    def _of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "Asked":
        if isinstance(dataset, Timed):
            count = settings.num_prompts or dataset.requests
        elif isinstance(dataset, Sessions):
            if settings.num_prompts is not None:
                count = settings.num_prompts
            elif settings.duration is not None and not is_closed_loop(settings):
                return cls(dataset.sessions(count), dataset.provenance, count, of_sessions=True)
        return cls(dataset.prompts(count), dataset.provenance, count)


def check(settings: RunSettings) -> None:
    """Open the data set and the tokenizer that the settings name, to know before a long wait that they are there.

    Raises:
        BadInput: They cannot be used.
    """
    from loadgen.datasets import cache

    cache.prepared(settings)


def prepare(order: Order, dataset: Dataset | None = None, progress: Callable[[int], None] = lambda done: None) -> None:
    """Write the requests of an order, from `dataset` or from the one its settings name.

    Raises:
        BadInput: The data set cannot be made, or there is no room for the requests.
    """
    if dataset is None:
        asked = Asked.named(order.settings, order.target, order.count, order.overhead)
    else:
        asked = Asked.of(dataset, order.settings, order.count)
    try:
        requests.write(
            order.folder,
            asked.prompts,
            order.target.body,
            asked.origin,
            asked.count,
            progress,
            of_sessions=asked.of_sessions,
        )
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        problem = f"no room for {asked.count} requests in {order.folder.parent} ({error.strerror})"
        raise BadInput("TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts") from error


def main() -> None:
    """Carry out the order on standard input."""
    from loadgen.datasets import cache  # noqa: F401 - now: whoever will order is still asking the server

    line = sys.stdin.buffer.readline()
    if not line:
        return
    order: Order = messages.decode(line)
    logs.to_stderr(order.settings.log_level)
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

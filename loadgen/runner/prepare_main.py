"""Preparing: making the requests of a run, in a process of its own.

`python -m loadgen.runner.prepare_main` reads one message, an Order, and answers with messages: the number of requests
made so far, and then None, or the error that stopped it. Where more are wanted while the clock runs, it goes on
reading: each message is the row that the run has reached, and requests are made until enough lie ahead of it.
"""

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.errors import BadInput, LoadgenError
from loadgen.runner.prepare_ahead import Lead
from loadgen.util import child_process, log_setup
from loadgen.workload import request_store
from loadgen.workload.prompt import UNPLANNED, Continued, Dataset, Prompt, Sessions, Timed
from loadgen.workload.prompt_digest import mark
from loadgen.workload.target import Target
from loadgen.workload.template_overhead import FIELD, Overhead

Origin = Callable[[], dict[str, Any]]
BYTES_PER_TOKEN = 5  # where nobody counts tokens: an English word and its space
NICENESS = 10  # while the clock runs, whoever measures goes first
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

logger = logging.getLogger("loadgen")


@dataclass(frozen=True)
class Order:
    """Which requests are wanted, of which shape, how many as far as that is known, and in which folder.

    `further` says whether more of them are wanted while the clock runs, as far as the data set has any.
    """

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    overhead: Overhead | None = None  # what the server adds to a prompt, where it is known beforehand
    further: bool = False


@dataclass(frozen=True)
class Asked:
    """The prompts of a data set, with what the server is expected to count of each.

    Attributes:
        prompts: Each of them once.
        origin: Called when they are through: where they come from, as JSON.
        count: How many there are to be, of sessions or of prompts.
        beyond: Called with a number of prompts: what the data set has after so many.
        of_sessions: Whether it is sessions, whatever the number of their turns.
    """

    prompts: Iterator[Prompt]
    origin: Origin
    count: int
    beyond: Callable[[int], Iterator[Prompt]]
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
        from loadgen.workload.datasets import prompt_cache
        from loadgen.workload.tokenizer.token_count import Counting

        found = prompt_cache.prepared(settings)
        counting = Counting.of(found, settings, target, overhead, asks=asks)
        own = cls._of(counting.fitted(found, settings), settings, count)

        def origin() -> dict[str, Any]:
            return own.origin() | counting.provenance()

        def beyond(made: int) -> Iterator[Prompt]:
            return counting.counted(own.beyond(made))

        return replace(own, prompts=counting.counted(own.prompts), origin=origin, beyond=beyond)

    @classmethod
    def _of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "Asked":
        beyond = dataset.beyond if isinstance(dataset, Continued) else _nothing
        if isinstance(dataset, Timed):
            count = settings.num_prompts or dataset.requests
        elif isinstance(dataset, Sessions):
            if settings.num_prompts is not None:
                count = settings.num_prompts
            elif settings.duration is not None and not is_closed_loop(settings):
                return cls(dataset.sessions(count), dataset.provenance, count, beyond, of_sessions=True)
        return cls(dataset.prompts(count), dataset.provenance, count, beyond)


def _nothing(count: int) -> Iterator[Prompt]:
    """What a data set without more has beyond its prompts."""
    return iter(())


def check(settings: RunSettings) -> None:
    """Open the data set and the tokenizer that the settings name, to know before a long wait that they are there.

    Raises:
        BadInput: They cannot be used.
    """
    from loadgen.workload.datasets import prompt_cache

    prompt_cache.prepared(settings)


def prepare(
    order: Order, dataset: Dataset | None = None, progress: Callable[[int], None] = lambda done: None
) -> Lead | None:
    """Write the requests of an order, and what is sent off the record, from `dataset` or the one its settings name.

    Returns:
        What makes further requests, where these are wanted and the data set may have some.

    Raises:
        BadInput: The data set cannot be made, or there is no room for the requests.
    """
    if dataset is None:
        asked = Asked.named(order.settings, order.target, order.count, order.overhead)
    else:
        asked = Asked.of(dataset, order.settings, order.count)
    try:
        return _written(order, asked, progress)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        problem = f"no room for {asked.count} requests in {order.folder.parent} ({error.strerror})"
        raise BadInput("TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts") from error


def _written(order: Order, asked: Asked, progress: Callable[[int], None]) -> Lead | None:
    folder, body = order.folder, order.target.body
    digest = request_store.write(
        folder, asked.prompts, body, asked.origin, asked.count, progress, of_sessions=asked.of_sessions
    )
    about, marks = request_store.about(folder), set[int]()
    further = asked.beyond(about["requests"])
    count = request_store.rehearsed(order.settings)
    if count and order.settings.warmup_prompt == "first":
        marks = {digest.first}
    elif count:
        prompts = list(_rehearsal(order, further, count))
        with request_store.RequestFiles(folder, body, request_store.REHEARSAL) as files:
            files.add(prompts)
        marks = set(map(mark, prompts))
    if count:
        about["sent_before"] = digest.asking(marks)
    lead = None
    if order.further and request_store.asked(folder) is None:  # who follows whom must be known before the clock starts
        lead = Lead(folder, body, further, about["requests"], digest.seen() | marks)
        lead.reach(0)
        about["further"] = True
    request_store.tell(folder, about)
    return lead


def _rehearsal(order: Order, further: Iterator[Prompt], count: int) -> Iterator[Prompt]:
    """The prompts that are sent off the record: first turns beyond those of the run, then random words as long."""
    own = list(islice((prompt for prompt in further if not prompt.follows), count))
    yield from own
    if len(own) < count:
        from loadgen.workload.datasets import filler

        with request_store.Requests(order.folder) as written:
            starts = [row for row in range(written.prepared) if written.think_ns(row) is None]
            rows = islice(cycle(starts), count - len(own))
            yield from filler.prompts(order.settings, [_length(order, written, row) for row in rows])


def _length(order: Order, written: request_store.Requests, row: int) -> tuple[int, int]:
    """Tokens of a written prompt, about so many where nobody has counted them, and of its answer."""
    tokens, wanted = written.tokens(row)
    if tokens == UNPLANNED:
        beside = len(order.target.body(Prompt("", 0, wanted, "")))
        tokens = (len(written.body(row)) - beside) // BYTES_PER_TOKEN
    return tokens, wanted


def main() -> None:
    """Carry out the order on standard input."""
    from loadgen.workload.datasets import prompt_cache  # noqa: F401 - now: whoever will order is still asking the server

    line = sys.stdin.buffer.readline()
    if not line:
        return
    order: Order = child_process.decode(line)
    log_setup.to_stderr(order.settings.log_level)
    say = sys.stdout.buffer

    def tell(message: object) -> None:
        say.write(child_process.encode(message))
        say.flush()

    try:
        lead = prepare(order, progress=tell)
    except LoadgenError as error:
        tell(error)
        return
    tell(None)
    if lead is not None:
        _keep_ahead(lead)


def _keep_ahead(lead: Lead) -> None:
    """Make further requests as they are wanted; what can no longer be made, the run repeats and says so."""
    os.nice(NICENESS)
    try:
        for line in sys.stdin.buffer:
            lead.reach(child_process.decode(line))
    except (OSError, LoadgenError) as error:
        logger.warning("no further prompts can be made (%s)", error)


if __name__ == "__main__":
    main()

"""The preparer process: writes the requests of a run to its folder.

`python -m loadgen.runner.prepare_main` reads messages, a PrepareOrder each, and answers with messages: the number of
requests written so far, and then None, or the error that stopped it. Where further requests are wanted while the clock
runs, that was the last order: each further message is the row that the run has reached, and requests are written until
enough lie ahead of it.
"""

import contextlib
import errno
import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from loadgen.config.load import SALTED
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, LoadgenError
from loadgen.runner.class_prompts import data_of, prompts_of_run
from loadgen.runner.prompt_source import PromptSource
from loadgen.util import child_process, kept_child, log_setup
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prompt import UNPLANNED, Dataset, Prompt, prompt_mark
from loadgen.workload.request_store import RequestFiles, next_block
from loadgen.workload.target import Target

BYTES_PER_TOKEN = 5  # where tokens are not counted: an English word and its space
NICENESS = 10  # while the clock runs, the measuring processes go first
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
ROWS_AHEAD = 4096  # that lie ahead of the request that was sent last, at least,
BYTES_AHEAD = 1 << 26  # unless they are longer than this together

logger = logging.getLogger("loadgen")


@dataclass(frozen=True)
class PrepareOrder:
    """Which requests to prepare.

    Attributes:
        settings: The settings of the run, resolved.
        target: The server, which decides the form of a request.
        count: How many, as far as that is known.
        folder: Where to write them.
        template_tokens: Tokens that the chat template adds to a prompt; None: unknown before the run.
        further: Whether more of them are wanted while the clock runs, as far as the data set has any.
        cache_block: The unit of the server's prefix cache.
    """

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    template_tokens: TemplateTokens | None = None
    further: bool = False
    cache_block: CacheBlock = CacheBlock()


class FurtherPrompts:
    """Appends prompts to the requests of a closed loop that time alone bounds, some way ahead of it.

    Args:
        folder: Where the requests lie.
        body: Turns a prompt into the bytes of a request's body.
        prompts: What follows those of the run.
        prepared: How many requests there are.
        known: The marks of those, and of all warm-up requests.
    """

    def __init__(
        self,
        folder: Path,
        body: Callable[[Prompt], bytes],
        prompts: Iterator[Prompt],
        prepared: int,
        known: set[int],
    ) -> None:
        self._folder, self._body, self._prompts = folder, body, prompts
        self._count, self._known = prepared, known
        self._rows_ahead = min(ROWS_AHEAD, BYTES_AHEAD * prepared // (folder / "bodies").stat().st_size)

    def write_ahead(self, row: int) -> int:
        """Write prompts until enough lie ahead of this row of the run, and return how many rows there are then.

        Raises:
            BadInput: The data set cannot be read.
            OSError: There is no room.
        """
        with RequestFiles(self._folder, self._body, further=True) as files:
            while self._count - row < self._rows_ahead and (block := next_block(self._prompts)):
                files.add(block, [self._is_known(prompt) for prompt in block])
                self._count += len(block)
        return self._count

    def _is_known(self, prompt: Prompt) -> bool:
        own = prompt_mark(prompt)
        known = own in self._known
        self._known.add(own)
        return known


def check(settings: RunSettings) -> None:
    """Open the data sets and the tokenizer that the settings name, to know before a long wait that they are there.

    Raises:
        BadInput: They cannot be used.
    """
    from loadgen.workload.datasets import prompt_cache
    from loadgen.workload.prompt_form import PromptForm

    def check_one(own: RunSettings) -> None:
        PromptForm.of(prompt_cache.cached_dataset(own), own, Target.from_settings(own, ""))

    classes = data_of(settings)
    for one, own in classes:
        with one.named_in_errors():
            check_one(own)
    if not classes:
        check_one(settings)


def prepare(
    order: PrepareOrder, dataset: Dataset | None = None, progress: Callable[[int], None] = lambda done: None
) -> FurtherPrompts | None:
    """Write the requests of an order, and the warm-up requests, from `dataset` or the one that its settings name.

    Where the data set decides when requests are due, the schedule of the run is written anew.

    Returns:
        What writes further requests, where these are wanted and the data set may have some.

    Raises:
        BadInput: The data set cannot be made, or there is no room for the requests.
    """
    from loadgen.workload.prefix_cache.cache_plan import CachePlan

    folder, body, settings = order.folder, order.target.body, order.settings
    salt = secrets.token_hex(8) if settings.cache == SALTED else None  # of this run alone
    if dataset is None:
        source = prompts_of_run(settings, order.target, order.count, order.template_tokens, salt=salt)
    else:
        source = PromptSource.of(dataset, settings, order.target, order.count, salt=salt)
    plan = CachePlan(settings.cache, folder, order.target, source.ends, order.cache_block, source.prefixes)
    with _room_for(source.count, folder), plan:
        watched = plan.watch(source.prompts, further=order.further)
        digest = request_store.write(
            folder, watched, body, source.origin, source.count, progress, of_sessions=source.of_sessions
        )
        about, marks = request_store.read_about(folder) | plan.about(digest.sha256), set[int]()
        if salt is not None:
            about["salt"] = salt
        beyond = source.beyond(about["requests"])
        count = request_store.warmup_count(settings)
        if count and settings.warmup_prompt == "first":
            marks = {digest.first_mark}
        elif count:
            prompts = list(_warmup_prompts(order, beyond, count))
            with RequestFiles(folder, body, request_store.WARMUP_PREFIX) as files:
                files.add(prompts)
            marks = set(map(prompt_mark, prompts))
        if count:
            about["sent_before"] = digest.count_marked(marks)
        further, asked_due = None, request_store.requested_due_ns(folder, counted_by_data=settings.counted_by_data)
        if asked_due is not None:
            schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), asked_due)
            request_store.write_schedule(folder, schedule)
        elif order.further:  # who follows whom must be known before the clock starts
            further = FurtherPrompts(folder, body, beyond, about["requests"], digest.marks() | marks)
            further.write_ahead(0)
            about["further"] = True
        request_store.write_about(folder, about)
        return further


@contextlib.contextmanager
def _room_for(count: int, folder: Path) -> Iterator[None]:
    """Refuse requests for which there is no room.

    Raises:
        BadInput: The block has found no room for them.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        problem = f"no room for {count} requests in {folder.parent} ({error.strerror})"
        raise BadInput("TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts") from error


def _warmup_prompts(order: PrepareOrder, beyond: Iterator[Prompt], count: int) -> Iterator[Prompt]:
    """Give the prompts of warm-up requests: first turns beyond those of the run, then random words as long."""
    own = list(islice((prompt for prompt in beyond if not prompt.follows), count))
    yield from own
    if len(own) < count:
        from loadgen.workload.datasets import random_words

        with request_store.Requests(order.folder) as written:
            starts = [row for row in range(written.prepared) if written.turn(row) == 0]
            rows = islice(cycle(starts), count - len(own))
            yield from random_words.filler_prompts(order.settings, [_length(order, written, row) for row in rows])


def _length(order: PrepareOrder, written: request_store.Requests, row: int) -> tuple[int, int]:
    """Return the tokens of a written prompt, an estimate where they are not counted, and of its answer."""
    tokens, wanted = written.tokens(row)
    if tokens == UNPLANNED:
        frame = len(order.target.body(Prompt("", 0, wanted, "")))
        tokens = (len(written.body(row)) - frame) // BYTES_PER_TOKEN
    return tokens, wanted


def run() -> None:
    """Carry out the orders on standard input."""
    from loadgen.workload.datasets import prompt_cache  # noqa: F401 - now: the order comes once the server has answered

    child_process.name_process("prepare")
    for line in kept_child.lines():
        order: PrepareOrder = child_process.decode(line)
        log_setup.to_stderr(order.settings.log_level)
        logging.getLogger().setLevel(order.settings.log_level.upper())
        try:
            further = prepare(order, progress=child_process.answer)
        except LoadgenError as error:
            child_process.answer(error)
            return
        child_process.answer(None)
        if order.further:
            if further is not None:
                _keep_ahead(further)
            return


def _keep_ahead(further: FurtherPrompts) -> None:
    """Write further requests as they are wanted; where that is no longer possible, the run repeats prompts."""
    os.nice(NICENESS)
    try:
        for line in sys.stdin.buffer:
            further.write_ahead(child_process.decode(line))
    except (OSError, LoadgenError) as error:
        logger.warning("no further prompts can be made (%s)", error)


if __name__ == "__main__":
    run()

"""The preparer: the process that writes the requests of a run to its folder, as its parent sees it
and as it runs.

`python -m loadgen.runner.preparer` reads messages, a `PrepareOrder` each, and answers with
messages: the number of requests written so far, and then None, or the error that stopped it. If
further requests are needed while the clock runs, that was the last order: each further message is
the row that the run has reached, and requests are written until enough lie ahead of it.
"""

import contextlib
import errno
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

from msgspec import Struct

from loadgen.config.data import BUILT_IN_TOKENIZER, TIKTOKEN
from loadgen.config.load import SALTED
from loadgen.config.request_class import CLASS
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, LoadgenError, within
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.runner.prompt_source import PromptSource, data_of, prompts_of_run
from loadgen.util import child_process, terminal_text
from loadgen.util.child_process import ChildProcess
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.datasets import prompt_cache, random_words
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.cache_plan import CachePlan
from loadgen.workload.prompt import UNPLANNED, Dataset, Prompt, prompt_mark
from loadgen.workload.prompt_form import PromptForm
from loadgen.workload.request_store import RequestFiles, next_block
from loadgen.workload.target import Target

MODULE = "loadgen.runner.preparer"
BYTES_PER_TOKEN = 5  # where tokens are not counted: an English word and its space
NICENESS = 10  # while the clock runs, the measuring processes go first
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# At least so many rows lie ahead of the request that was sent last, unless they are longer than
# this together.
ROWS_AHEAD = 4096
BYTES_AHEAD = 1 << 26

logger = logging.getLogger("loadgen")


class PrepareOrder(Struct, frozen=True):
    """Which requests to prepare.

    Attributes:
        settings: The settings of the run, resolved.
        target: The server, which decides the form of a request.
        count: Number of requests, as far as that is known.
        folder: Where to write them.
        template_tokens: Tokens that the chat template adds to a prompt; None: unknown before the
            run.
        further: Whether more of them are needed while the clock runs, as far as the data set has
            any.
        cache_block: The unit of the server's prefix cache.
    """

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    template_tokens: TemplateTokens | None = None
    further: bool = False
    cache_block: CacheBlock = CacheBlock()


class Preparer(ChildProcess):
    """A process that prepares the requests of one run, while other processes connect.

    Args:
        keep: Whether to keep the process after the run, for the next one in this process.
    """

    def __init__(self, *, keep: bool = False) -> None:
        super().__init__(MODULE, keep=keep)
        self._reached = 0

    async def prepare(self, order: PrepareOrder, on_progress: OnProgress) -> None:
        """Have the requests written, and report progress.

        Args:
            order: Which requests.
            on_progress: Called at once, and each time that more have been written.

        Raises:
            BadInput: The requests cannot be made.
            LoadgenError: The process died.
        """
        begun = time.monotonic()
        is_counted = order.settings.num_prompts is not None or not order.settings.timed_by_data
        scheduled = order.count if is_counted else 0
        self.send(order)
        # A tokenizer may take long before the first is made.
        on_progress(Progress("preparing", scheduled=scheduled))
        async for count in self.messages():
            if count is None:
                self.is_idle = not order.further
                if self.is_idle and not self._is_kept:
                    self.kill()  # its memory is free before the clock starts
                return
            on_progress(
                Progress("preparing", time.monotonic() - begun, scheduled=scheduled, ended=count)
            )
        raise LoadgenError(f"the process that makes the prompts {await self.wait_ended()}")

    def keep_ahead(self, progress: Progress) -> None:
        """Report how far the run is to a process that prepares further requests meanwhile.

        Args:
            progress: How far the run is; nothing is sent unless it has reached a further row.
        """
        if progress.reached > self._reached:
            self._reached = progress.reached
            self.send(progress.reached)


class FurtherPrompts:
    """Appends prompts to the requests of a closed loop that time alone bounds, some way ahead of
    it.

    Args:
        folder: Where the requests are.
        body: Turns a prompt into the bytes of a request's body.
        prompts: What follows the prompts of the run.
        prepared: Number of requests there.
        marks: The marks of those, and of all warm-up requests.
    """

    def __init__(
        self,
        folder: Path,
        body: Callable[[Prompt], bytes],
        prompts: Iterator[Prompt],
        prepared: int,
        marks: set[int],
    ) -> None:
        self._folder = folder
        self._body = body
        self._prompts = prompts
        self._count = prepared
        self._marks = marks
        self._rows_ahead = min(
            ROWS_AHEAD, BYTES_AHEAD * prepared // (folder / "bodies").stat().st_size
        )

    def write_ahead(self, row: int) -> int:
        """Write prompts until enough lie ahead of a row of the run.

        Args:
            row: The row that the run has reached.

        Returns:
            How many rows there are then.

        Raises:
            BadInput: The data set cannot be read.
            OSError: There is no room.
        """
        with RequestFiles(self._folder, self._body, further=True) as files:
            while self._count - row < self._rows_ahead and (block := next_block(self._prompts)):
                repeated = []
                for prompt in block:
                    mark = prompt_mark(prompt)
                    repeated.append(mark in self._marks)
                    self._marks.add(mark)
                files.add(block, repeated)
                self._count += len(block)
        return self._count


def check(settings: RunSettings) -> None:
    """Open the data sets and the tokenizer that the settings name, to know before a long wait that
    they are there.

    Args:
        settings: The settings of a run.

    Raises:
        BadInput: They cannot be used.
    """
    classes = data_of(settings)
    for request_class, class_settings in classes:
        with within(CLASS, request_class.name):
            _check_data(class_settings)
    if not classes:
        _check_data(settings)


def _check_data(settings: RunSettings) -> None:
    PromptForm.of(
        prompt_cache.cached_dataset(settings), settings, Target.from_settings(settings, "")
    )


def prepare(
    order: PrepareOrder,
    dataset: Dataset | None = None,
    progress: Callable[[int], None] = lambda count: None,
) -> FurtherPrompts | None:
    """Write the requests of an order, and the warm-up requests.

    If the data set decides when requests are due, the schedule of the run is written anew.

    Args:
        order: Which requests.
        dataset: The data set; None: the one that the settings name.
        progress: Called with the number of requests written so far.

    Returns:
        What writes further requests, if these are needed and the data set may have some.

    Raises:
        BadInput: The data set cannot be made, or there is no room for the requests.
    """
    folder = order.folder
    body = order.target.body
    settings = order.settings
    salt = secrets.token_hex(8) if settings.cache == SALTED else None  # of this run alone
    if dataset is None:
        source = prompts_of_run(
            settings, order.target, order.count, order.template_tokens, salt=salt
        )
        tokenizer = settings.tokenizer or ""
        if tokenizer.startswith(TIKTOKEN) and source.ends is not None:
            logger.warning(
                "prompts are made with the encoding %s of tiktoken; the server counts their tokens",
                tokenizer.removeprefix(TIKTOKEN),
            )
        if tokenizer == BUILT_IN_TOKENIZER and source.ends is not None:
            logger.warning(
                "lengths of prompts are approximate: loadgen's own tokenizer makes them (that of "
                "%s is not to be had); --tokenizer names another",
                settings.model,
            )
    else:
        source = PromptSource.of(dataset, settings, order.target, order.count, salt=salt)
    plan = CachePlan(
        settings.cache, folder, order.target, source.ends, order.cache_block, source.prefixes
    )
    with _room_for(source.count, folder), plan:
        prompts = plan.watch(source.prompts, further=order.further)
        digest = request_store.write(
            folder,
            prompts,
            body,
            source.origin,
            source.count,
            progress,
            of_sessions=source.of_sessions,
        )
        about = request_store.read_about(folder) | plan.about(digest.sha256)
        if salt is not None:
            about["salt"] = salt
        beyond = source.beyond(about["requests"])
        marks = set[int]()
        warmup_count = request_store.warmup_count(settings)
        if warmup_count and settings.warmup_prompt == "first":
            marks = {digest.first_mark}
        elif warmup_count:
            warmup_prompts = list(_warmup_prompts(order, beyond, warmup_count))
            with RequestFiles(folder, body, request_store.WARMUP_PREFIX) as files:
                files.add(warmup_prompts)
            marks = set(map(prompt_mark, warmup_prompts))
        if warmup_count:
            about["sent_before"] = digest.count_marked(marks)
        further = None
        requested_due = request_store.requested_due_ns(
            folder, counted_by_data=settings.counted_by_data
        )
        if requested_due is not None:
            schedule = Schedule.from_settings(
                settings, seed_of(settings, "arrivals"), requested_due
            )
            request_store.write_schedule(folder, schedule)
        elif order.further:  # who follows whom must be known before the clock starts
            further = FurtherPrompts(
                folder, body, beyond, about["requests"], digest.marks() | marks
            )
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
        raise BadInput(
            "TMPDIR", problem, "name a folder with more, or ask for fewer or shorter prompts"
        ) from error


def _warmup_prompts(order: PrepareOrder, beyond: Iterator[Prompt], count: int) -> Iterator[Prompt]:
    """Yield the prompts of warm-up requests: first turns beyond those of the run, then random
    words as long.
    """
    first_turns = list(islice((prompt for prompt in beyond if not prompt.follows), count))
    yield from first_turns
    if len(first_turns) < count:
        with request_store.Requests(order.folder) as requests:
            starts = [row for row in range(requests.prepared) if requests.turn(row) == 0]
            rows = islice(cycle(starts), count - len(first_turns))
            lengths = []
            for row in rows:
                input_tokens, output_tokens = requests.tokens(row)
                if input_tokens == UNPLANNED:  # they are not counted: an estimate
                    frame = len(order.target.body(Prompt("", 0, output_tokens, "")))
                    input_tokens = (len(requests.body(row)) - frame) // BYTES_PER_TOKEN
                lengths.append((input_tokens, output_tokens))
            yield from random_words.filler_prompts(order.settings, lengths)


def run() -> None:
    """Run the process: carry out the orders on standard input."""
    child_process.name_process("prepare")
    lines = child_process.InputLines()
    for line in lines:
        order: PrepareOrder = child_process.decode(line)
        terminal_text.log_to_stderr(order.settings.log_level)
        logging.getLogger().setLevel(order.settings.log_level.upper())
        try:
            further = prepare(order, progress=child_process.answer)
        except LoadgenError as error:
            child_process.answer(error)
            return
        child_process.answer(None)
        if further is not None:
            # Once further requests cannot be written, the run repeats prompts.
            os.nice(NICENESS)
            try:
                for row in lines:
                    further.write_ahead(child_process.decode(row))
            except (OSError, LoadgenError) as error:
                logger.warning("no further prompts can be made (%s)", error)
        if order.further:
            return


if __name__ == "__main__":
    run()

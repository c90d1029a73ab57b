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
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings, is_closed_loop, seed_of
from loadgen.errors import BadInput, LoadgenError
from loadgen.util import child_process, kept_child, log_setup
from loadgen.workload import request_store
from loadgen.workload.adapters import Adapters
from loadgen.workload.arrivals import Schedule
from loadgen.workload.chat_template.template_tokens import FIELD, TemplateTokens
from loadgen.workload.prompt import UNPLANNED, Continued, Dataset, Prompt, Sessions, Timed
from loadgen.workload.prompt_digest import prompt_mark
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
    """

    settings: RunSettings
    target: Target
    count: int
    folder: Path
    template_tokens: TemplateTokens | None = None
    further: bool = False


@dataclass(frozen=True)
class PromptSource:
    """The prompts of a data set, with what the server is expected to count of each.

    Attributes:
        prompts: Each of them once.
        origin: Called after the last prompt: where they come from, as JSON.
        count: How many there are to be, of sessions or of prompts.
        beyond: Called with a number of prompts: what the data set has after so many.
        of_sessions: Whether `count` is a number of sessions, whatever the number of their turns.
    """

    prompts: Iterator[Prompt]
    origin: Callable[[], dict[str, Any]]
    count: int
    beyond: Callable[[int], Iterator[Prompt]]
    of_sessions: bool = False

    @classmethod
    def of(cls, dataset: Dataset, settings: RunSettings, target: Target, count: int) -> "PromptSource":
        """Take the prompts of a caller's data set, which says itself what it knows of the server's counts.

        Args:
            dataset: The data set.
            settings: The settings of the run.
            target: The server.
            count: How many are due, as far as that is known beforehand.

        Raises:
            BadInput: The settings want prompts made to the server's measure, or a form that they cannot have.
        """
        if settings.input_len_counts == "server":
            raise BadInput(FIELD, "the length of your own data set is fixed", "leave it out")
        from loadgen.workload.prompt_form import PromptForm

        form = PromptForm.of(dataset, settings, target)
        return cls._of(dataset, settings, count)._changed(form.apply, form.provenance)._asking(target)

    @classmethod
    def named(
        cls,
        settings: RunSettings,
        target: Target,
        count: int,
        template_tokens: TemplateTokens | None = None,
        *,
        asks: bool = True,
    ) -> "PromptSource":
        """Open the data set that the settings name.

        Args:
            settings: The settings of the run.
            target: The server.
            count: How many are due, as far as that is known beforehand.
            template_tokens: Tokens that the chat template adds to a prompt; None: unknown before the run.
            asks: Whether the server may be asked for them.

        Raises:
            BadInput: The settings cannot be met.
        """
        from loadgen.workload.chat_template.prediction import TokenPrediction
        from loadgen.workload.datasets import prompt_cache
        from loadgen.workload.prompt_form import PromptForm

        found = prompt_cache.cached_dataset(settings)
        form = PromptForm.of(found, settings, target)
        prediction = TokenPrediction.of(found, settings, target, template_tokens, asks=asks)
        sized = (prediction if form.template is None else form).sized(found, settings)
        own = cls._of(sized, settings, count)._changed(form.apply, form.provenance)
        return own._changed(prediction.predict, prediction.provenance)._asking(target)

    def _changed(
        self, change: Callable[[Iterator[Prompt]], Iterator[Prompt]], facts: Callable[[], dict[str, Any]]
    ) -> "PromptSource":
        """Return a source of these prompts, changed, with further facts about their origin."""
        return replace(
            self,
            prompts=change(self.prompts),
            origin=lambda: self.origin() | facts(),
            beyond=lambda made: change(self.beyond(made)),
        )

    def _asking(self, target: Target) -> "PromptSource":
        """Return the same prompts; they ask for no output tokens where the server generates none."""
        return self if target.generates else self._changed(partial(map, _without_answer), dict)

    @classmethod
    def _of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "PromptSource":
        beyond = dataset.beyond if isinstance(dataset, Continued) else _nothing
        if isinstance(dataset, Timed):
            count = settings.num_prompts or dataset.requests
        elif isinstance(dataset, Sessions):
            if settings.num_prompts is not None:
                count = settings.num_prompts
            elif settings.duration is not None and not is_closed_loop(settings):
                return cls(dataset.sessions(count), dataset.provenance, count, beyond, of_sessions=True)
        own = cls(dataset.prompts(count), dataset.provenance, count, beyond)
        adapters = Adapters.from_settings(settings)
        if adapters is None:
            return own
        return replace(
            own, prompts=adapters.assigned(own.prompts), beyond=lambda made: adapters.assigned(beyond(made), made)
        )


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
    """Open the data set and the tokenizer that the settings name, to know before a long wait that they are there.

    Raises:
        BadInput: They cannot be used.
    """
    from loadgen.workload.datasets import prompt_cache
    from loadgen.workload.prompt_form import PromptForm

    PromptForm.of(prompt_cache.cached_dataset(settings), settings, Target.from_settings(settings, ""))


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
    if dataset is None:
        source = PromptSource.named(order.settings, order.target, order.count, order.template_tokens)
    else:
        source = PromptSource.of(dataset, order.settings, order.target, order.count)
    with _room_for(source.count, order.folder):
        folder, body, settings = order.folder, order.target.body, order.settings
        digest = request_store.write(
            folder, source.prompts, body, source.origin, source.count, progress, of_sessions=source.of_sessions
        )
        about, marks = request_store.read_about(folder), set[int]()
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
        further, asked_due = None, request_store.requested_due_ns(folder)
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


def _without_answer(prompt: Prompt) -> Prompt:
    return replace(prompt, output_tokens=0)


def _nothing(count: int) -> Iterator[Prompt]:
    """Return no prompts: what a data set without more has beyond its prompts."""
    return iter(())


def _warmup_prompts(order: PrepareOrder, beyond: Iterator[Prompt], count: int) -> Iterator[Prompt]:
    """Give the prompts of warm-up requests: first turns beyond those of the run, then random words as long."""
    own = list(islice((prompt for prompt in beyond if not prompt.follows), count))
    yield from own
    if len(own) < count:
        from loadgen.workload.datasets import filler

        with request_store.Requests(order.folder) as written:
            starts = [row for row in range(written.prepared) if written.think_ns(row) is None]
            rows = islice(cycle(starts), count - len(own))
            yield from filler.filler_prompts(order.settings, [_length(order, written, row) for row in rows])


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

    def send(message: object) -> None:
        sys.stdout.buffer.write(child_process.encode(message))
        sys.stdout.buffer.flush()

    for line in kept_child.lines():
        order: PrepareOrder = child_process.decode(line)
        log_setup.to_stderr(order.settings.log_level)
        logging.getLogger().setLevel(order.settings.log_level.upper())
        try:
            further = prepare(order, progress=send)
        except LoadgenError as error:
            send(error)
            return
        send(None)
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

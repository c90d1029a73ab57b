"""The store of prepared requests: bodies and an index in files, which a measuring process reads one
at a time.

A folder holds `bodies` (JSON bodies end to end, with ANSWER_PLACEHOLDER for a repeated answer of
the server), `index` (int64, a row per request: end offset in bodies, input tokens, output tokens,
due time or DRAWN or FOLLOWS, think time in ns, tokens that the server is expected to count or -1,
whether an earlier row asks the same, the class, the end of its part of `after`, the results that
are expected or 0), `after` (int64: how many rows back the requests lie that each follows; empty
without sessions), `sources` (one JSON string a line), `schedule` (int64: the duration in ns, then
the due times) and `about.json`. Rows may be added while others read: the index grows last. What is
sent off the record lies in files of the same kind, whose names begin with WARMUP_PREFIX.
"""

import itertools
import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import orjson

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.core.request_table import RequestTable
from loadgen.errors import BadInput, setting
from loadgen.workload.due_times import DRAWN, FOLLOWS, DueTimes
from loadgen.workload.endpoints.pooling import count_texts
from loadgen.workload.image import estimated_bytes, images
from loadgen.workload.prompt import (
    ANSWER_PLACEHOLDER,
    Prompt,
    PromptDigest,
    SessionGraph,
    SessionOrder,
)

# Columns of the index.
END, INPUT, OUTPUT, DUE, THINK, EXPECTED, REPEATS, CLASS, AFTER, TEXTS = range(10)
COLUMNS = TEXTS + 1
ROW_BYTES = 8 * COLUMNS  # of the index
ROWS_AT_ONCE = 1 << 20  # rows read at a time before the clock starts
WARMUP_PREFIX = "warmup-"
WARM_CACHE_PREFIX = "warm-cache-"
ABOUT, PARTS = "about.json", ("bodies", "sources", "after", "index")  # the index is written last
SCHEDULE = "schedule"
# Fields of bodies that ask for JSON. In the text of a prompt their quotes are escaped.
JSON_MARKS = (b'"json_schema"', b'"json_object"', b'"guided_json"', b'"structured_outputs"')
# Prompts, and characters of them, that are written at a time.
BLOCK, BLOCK_CHARACTERS = (1024, 1 << 22)


class RequestFiles:
    """Writes requests to the files of a store, a block at a time.

    Args:
        folder: The folder of the store.
        body: Returns the request body of a prompt.
        of: The prefix of the file names.
        further: Whether to append to existing files.
    """

    def __init__(
        self, folder: Path, body: Callable[[Prompt], bytes], of: str = "", *, further: bool = False
    ) -> None:
        self._body = body
        self._files = ExitStack()  # closes all, also if one has no room for what is left to write
        self._bodies, self._sources, self._after, self._index = (
            self._files.enter_context(open(folder / f"{of}{name}", "ab" if further else "wb"))  # noqa: SIM115
            for name in PARTS
        )
        self._end, self._after_end = self._bodies.tell(), self._after.tell() // 8
        self.repeats_answers = False
        self.images = 0
        self.structured = 0  # prompts whose answers may have to be JSON

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    @property
    def size(self) -> int:
        """Bytes of all bodies so far."""
        return self._end

    def add(self, block: Sequence[Prompt], repeats: Sequence[bool] = ()) -> None:
        """Append prompts.

        Args:
            block: The prompts, at least one.
            repeats: For each, whether an earlier row asks the same; empty if not known.
        """
        index, after = array("q"), array("q")
        for prompt, is_repeat in zip(block, repeats or [False] * len(block), strict=True):
            body = self._body(prompt)  # one at a time: with images it has megabytes
            self._bodies.write(body)
            self._sources.write(orjson.dumps(prompt.source) + b"\n")
            self._end += len(body)
            self._after_end += len(prompt.after)
            after.extend(prompt.after)
            tokens = prompt.input_tokens, prompt.output_tokens
            due = FOLLOWS if prompt.follows else DRAWN if prompt.due_ns is None else prompt.due_ns
            expected = -1 if prompt.server_tokens is None else prompt.server_tokens
            texts = 0 if prompt.output_tokens else count_texts(body)
            more = is_repeat, prompt.class_number, self._after_end, texts
            index.extend((self._end, *tokens, due, prompt.think_ns, expected, *more))
            self.repeats_answers = self.repeats_answers or ANSWER_PLACEHOLDER in body
            if any(mark in body for mark in JSON_MARKS):
                self.structured += 1
            self.images += sum(1 for _ in images(prompt.messages))
        self._after.write(after.tobytes())
        for file in (self._bodies, self._sources, self._after):
            file.flush()
        self._index.write(index.tobytes())
        self._index.flush()


def write(
    folder: Path,
    prompts: Iterable[Prompt],
    body: Callable[[Prompt], bytes],
    origin: Callable[[], dict[str, Any]],
    count: int,
    progress: Callable[[int], None] = lambda done: None,
    *,
    of_sessions: bool = False,
) -> PromptDigest:
    """Write the requests of a run into `folder`.

    Args:
        folder: The folder; it exists.
        prompts: The prompts.
        body: Returns the request body of a prompt.
        origin: Called at the end; returns the provenance of the prompts as JSON.
        count: The number of prompts.
        progress: Called after each block with the number of prompts written.
        of_sessions: Whether `count` is a number of sessions instead.

    Returns:
        The digest of the prompts.

    Raises:
        BadInput: There are fewer or more prompts, or one follows a prompt that is not in its
            session.
    """
    digest, order, done = PromptDigest(), SessionOrder(), 0
    # One more than needed, to notice that there are too many.
    waiting = _at_most(prompts, count + 1, of_sessions)
    with RequestFiles(folder, body) as files:
        while block := next_block(waiting):
            files.add(block)
            for prompt in block:
                digest.add(prompt)
                order.add(prompt)
            done += len(block)
            _require_room(folder, files.size, order.sessions if of_sessions else done, count)
            progress(done)
    number = order.sessions if of_sessions else done
    if number != count:
        available, what = (
            number if number < count else "more",
            "sessions" if of_sessions else "prompts",
        )
        problem = f"the data set has {available} {what}, and {count} are needed"
        raise BadInput(
            setting.num_prompts, problem, "give the number that it has, or correct the data set"
        )
    facts = {"sha256": digest.sha256, "requests": done, "distinct": digest.distinct}
    held = {
        "repeats_answers": files.repeats_answers,
        "images": files.images,
        "structured": files.structured,
    }
    write_about(folder, origin() | facts | {name: value for name, value in held.items() if value})
    return digest


def _require_room(folder: Path, size: int, done: int, count: int) -> None:
    """Check that the rest of the requests fits on the disk, if they are as large as those so far.

    Args:
        folder: The folder of the store.
        size: Bytes of the bodies so far.
        done: How many there are of `count`.
        count: How many there will be.

    Raises:
        BadInput: There is not enough room.
    """
    needed, free = size * (count - done) // max(1, done), shutil.disk_usage(folder).free
    if needed > free:
        total = f"{count} requests need about {(size + needed) / 1e9:.1f} GB"
        problem = f"{total}, and {folder.parent} has {free / 1e9:.1f} GB left"
        raise BadInput(
            "TMPDIR", problem, "name a folder with more, or ask for fewer or smaller requests"
        )


def _at_most(prompts: Iterable[Prompt], count: int, of_sessions: bool) -> Iterator[Prompt]:
    for prompt in prompts:
        if not (of_sessions and prompt.follows):
            count -= 1
        if count < 0:
            return
        yield prompt


def next_block(waiting: Iterator[Prompt]) -> list[Prompt]:
    """Take the next block of prompts, within BLOCK and BLOCK_CHARACTERS; empty at the end."""
    block: list[Prompt] = []
    characters = 0
    for prompt in itertools.islice(waiting, BLOCK):
        block.append(prompt)
        characters += (
            len(prompt.text) + sum(map(len, prompt.texts)) + estimated_bytes(prompt.messages)
        )
        if characters >= BLOCK_CHARACTERS:
            break
    return block


def warmup_count(settings: RunSettings) -> int:
    """Return how many different requests warm the server up and test it before the clock
    starts.
    """
    tests = 1 if settings.ready_check_timeout_sec > 0 else 0
    return settings.warmup_requests + tests


def write_about(folder: Path, facts: dict[str, Any]) -> None:
    """Write the facts about the prompts."""
    (folder / ABOUT).write_bytes(orjson.dumps(facts))


def file_names(folder: Path) -> list[str]:
    """The names of those files in a folder that hold requests; each index comes after what it
    tells of.
    """
    names = (
        ABOUT,
        SCHEDULE,
        *(f"{of}{name}" for of in (WARMUP_PREFIX, WARM_CACHE_PREFIX, "") for name in PARTS),
    )
    return [name for name in names if (folder / name).exists()]


def read_about(folder: Path) -> dict[str, Any]:
    """Read the facts about the prompts: their provenance, sha256, number of requests and of
    distinct prompts.

    `further` says that rows may be added during the run; `sent_before` is how many prompts are sent
    as warm-ups too.
    """
    facts: dict[str, Any] = orjson.loads((folder / ABOUT).read_bytes())
    return facts


def requested_due_ns(folder: Path, *, counted_by_data: bool = False) -> "array[int] | None":
    """Read the due times of the prompts: ns, DRAWN or FOLLOWS; None if all are DRAWN and their
    number was asked for.
    """
    due_ns = _columns((folder / "index").read_bytes())[DUE][: read_about(folder)["requests"]]
    return None if due_ns.count(DRAWN) == len(due_ns) and not counted_by_data else due_ns


def write_schedule(folder: Path, schedule: DueTimes) -> None:
    """Write the schedule of the run beside its requests, in the place of one that was written
    before.
    """
    written = folder / f"{SCHEDULE}.new"
    written.write_bytes(array("q", [schedule.duration_ns]).tobytes() + schedule.due.tobytes())
    written.replace(folder / SCHEDULE)


def schedule(folder: Path) -> DueTimes:
    """Read the schedule of the run."""
    numbers = array("q", (folder / SCHEDULE).read_bytes())
    return DueTimes(numbers[1:], numbers[0])


class Requests:
    """The requests of a store, read one at a time so that memory does not grow.

    An index beyond the last row looks for added rows; if there are none, the rows are repeated from
    then on.

    Args:
        folder: The folder of the store.
        of: The prefix of the file names.

    Attributes:
        table: What is planned of each request, and its body.
        record: Makes the record of a request by its number and due time, ns.
        body: Reads the JSON body of a request by its number.
        tokens: Returns the planned input and output tokens of a request by its number.
        prepared: The number of requests before the clock started.
        repeats_answers: Whether any body contains ANSWER_PLACEHOLDER.
        structured: Whether any body may ask for JSON.
        output_tokens: Mean of the planned output tokens of these; an unknown plan counts as 0.
    """

    record: Callable[[int, int], Record]
    body: Callable[[int], bytes]
    tokens: Callable[[int], tuple[int, int]]

    def __init__(self, folder: Path, of: str = "") -> None:
        self._folder, self._of = folder, of
        self._source_list: list[str] | None = None
        self._sources = open(folder / f"{of}sources", "rb")  # noqa: SIM115 - closed by __exit__
        self._file, self._index = (
            os.open(folder / f"{of}{name}", os.O_RDONLY) for name in ("bodies", "index")
        )
        self.table = RequestTable(self._file)
        self.record, self.body = self.table.record, self.table.body
        self.tokens = self.table.tokens
        self._thinks, self._turns, self._repeats = array("q"), array("q"), array("b")
        facts = {} if of else read_about(folder)
        while self._grow(ROWS_AT_ONCE):
            pass
        if facts.get("further"):
            self.table.add_rows = self._grow
        self.prepared = facts.get("requests", len(self))
        self.repeats_answers = bool(facts.get("repeats_answers"))
        self.structured = bool(facts.get("structured"))
        self.output_tokens = self.table.output_tokens / len(self)

    def __len__(self) -> int:
        return len(self.table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.table.add_rows = None  # a cycle of references, and the index is closed
        os.close(self._file)
        os.close(self._index)
        self._sources.close()

    def think_ns(self, index: int) -> int:
        """Return the time from the last answer that request `index` follows until it is due, ns."""
        return self._thinks[self.table.row(index)]

    def graph(self) -> SessionGraph:
        """Read which requests follow which."""
        ends = _columns((self._folder / f"{self._of}index").read_bytes())[AFTER]
        return SessionGraph(array("q", (self._folder / f"{self._of}after").read_bytes()), ends)

    def turn(self, index: int) -> int:
        """Return how many requests of its session come before request `index`."""
        return self._turns[self.table.row(index)]

    def repeats(self, index: int) -> bool:
        """Return whether request `index`, beyond the prepared ones, repeats the prompt of an
        earlier request.
        """
        return self.table.row(index) != index or bool(self._repeats[index])

    def sources(self) -> list[str]:
        """Return the source of each prompt. The list grows with the rows."""
        if self._source_list is None:
            self._source_list = []
            self._read_sources()
        return self._source_list

    def _grow(self, count: int = BLOCK) -> bool:
        """Read up to `count` added rows; return whether there were any."""
        columns = _columns(os.pread(self._index, count * ROW_BYTES, len(self) * ROW_BYTES))
        planned = END, INPUT, OUTPUT, EXPECTED, CLASS, TEXTS
        self.table.extend(*(columns[column] for column in planned))
        self._thinks += columns[THINK]
        turn = self._turns[-1] if self._turns else 0
        for due in columns[DUE]:
            turn = turn + 1 if due == FOLLOWS else 0
            self._turns.append(turn)
        self._repeats.extend(list(columns[REPEATS]))
        self._read_sources()
        return len(columns[END]) > 0

    def _read_sources(self) -> None:
        if self._source_list is not None:
            self._source_list += map(
                orjson.loads, itertools.islice(self._sources, len(self) - len(self._source_list))
            )


def _columns(data: bytes) -> "list[array[int]]":
    rows = array("q", data[: len(data) // ROW_BYTES * ROW_BYTES])
    return [rows[column::COLUMNS] for column in range(COLUMNS)]

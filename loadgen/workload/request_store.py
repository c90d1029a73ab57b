"""Requests: the bodies of a run, ready to send, in files that a measuring process reads as it goes.

A folder holds `bodies` (JSON bodies end to end, with HOLE where an answer of the server is to be repeated), `index`
(int64, a row per request: end offset in bodies, input tokens, output tokens, due time or DRAWN or FOLLOWS, think time
in ns, tokens that the server is expected to count or -1, whether an earlier row asks the same), `sources` (one JSON
string a line), `schedule` (int64: the duration in ns, then the due times) and `about.json`. Rows may be added while
others read: the index grows last. What is sent off the record lies in files of the same kind, whose names begin with
REHEARSAL.
"""

import itertools
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.arrays import Int64s
from loadgen.workload.arrivals import DRAWN, FOLLOWS, Schedule
from loadgen.workload.prompt import HOLE, Prompt
from loadgen.workload.prompt_digest import Digest

END, INPUT, OUTPUT, DUE, THINK, EXPECTED, REPEATS = range(7)  # columns of the index
WIDTH = 8 * (REPEATS + 1)  # bytes of a row
READ = 1 << 20  # rows that are read at a time before the clock starts
REHEARSAL = "rehearsal-"
ABOUT, PARTS = "about.json", ("bodies", "sources", "index")  # the index is written last
SCHEDULE = "schedule"
BLOCK, BLOCK_CHARACTERS = 1024, 1 << 22  # prompts, and characters of them, that are written at a time


class RequestFiles:
    """Appends requests to their files, a block at a time.

    Args:
        folder: Where they are, or will be.
        body: Turns a prompt into the bytes of a request's body.
        of: What their names begin with.
        further: Whether they go on behind what is there.
    """

    def __init__(self, folder: Path, body: Callable[[Prompt], bytes], of: str = "", *, further: bool = False) -> None:
        self._body = body
        self._bodies, self._sources, self._index = (
            open(folder / f"{of}{name}", "ab" if further else "wb")  # noqa: SIM115 - closed by __exit__
            for name in PARTS
        )
        self._end = self._bodies.tell()
        self.repeats_answers = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for file in (self._bodies, self._sources, self._index):
            file.close()

    def add(self, block: Sequence[Prompt], repeats: Sequence[bool] = ()) -> None:
        """Append these prompts.

        Args:
            block: Which, at least one.
            repeats: Of each, whether an earlier row asks the same; nothing where that is not looked at.
        """
        made = [self._body(prompt) for prompt in block]
        data = b"".join(made)
        ends = list(itertools.accumulate(map(len, made), initial=self._end))[1:]
        planned = [_planned(prompt) for prompt in block]
        rows = np.column_stack((ends, np.array(planned, dtype=np.int64), repeats or [False] * len(block)))
        self.repeats_answers = self.repeats_answers or HOLE in data
        self._end = ends[-1]
        self._bodies.write(data)
        self._sources.write(b"".join(orjson.dumps(prompt.source) + b"\n" for prompt in block))
        for file in (self._bodies, self._sources):
            file.flush()
        self._index.write(rows.astype(np.int64).tobytes())
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
) -> Digest:
    """Write the requests of a run into `folder`.

    Args:
        folder: Where to; it exists.
        prompts: What to ask.
        body: Turns a prompt into the bytes of a request's body.
        origin: Called at the end: where the prompts come from, as JSON.
        count: How many prompts there are to be.
        progress: Told after each block how many are done.
        of_sessions: Whether `count` is how many sessions there are to be, whatever the number of their turns.

    Returns:
        The digest of the prompts.

    Raises:
        BadInput: There are fewer, or more; or the first follows none.
    """
    digest, done, begun, first = Digest(), 0, 0, None
    waiting = _at_most(prompts, count + 1, of_sessions)  # one that never ends is one too many
    with RequestFiles(folder, body) as files:
        while block := blocked(waiting):
            files.add(block)
            for prompt in block:
                digest.add(prompt)
            first, done = first or block[0], done + len(block)
            begun += sum(not prompt.follows for prompt in block)
            progress(done)
    number = begun if of_sessions else done
    if number != count:
        given, what = number if number < count else "more", "sessions" if of_sessions else "prompts"
        problem = f"the data set gives {given} {what} where {count} were asked"
        raise BadInput("--num-prompts", problem, "ask for what it has, or mend the data set")
    if first is not None and first.follows:
        raise BadInput("--dataset-name", "the first prompt follows another", "begin with the first turn of a session")
    known = {"sha256": digest.sha256, "requests": done, "distinct": digest.distinct}
    if files.repeats_answers:
        known["repeats_answers"] = True
    tell(folder, origin() | known)
    return digest


def _at_most(prompts: Iterable[Prompt], count: int, of_sessions: bool) -> Iterator[Prompt]:
    """The first of them: so many prompts, or sessions."""
    for prompt in prompts:
        count -= not (of_sessions and prompt.follows)
        if count < 0:
            return
        yield prompt


def blocked(waiting: Iterator[Prompt]) -> list[Prompt]:
    """The next prompts, no more than are to be held at a time; none where there are no more."""
    block: list[Prompt] = []
    characters = 0
    for prompt in itertools.islice(waiting, BLOCK):
        block.append(prompt)
        characters += len(prompt.text)
        if characters >= BLOCK_CHARACTERS:
            break
    return block


def _planned(prompt: Prompt) -> tuple[int, ...]:
    """The columns of a prompt in the index, but where its body ends."""
    expected = -1 if prompt.server_tokens is None else prompt.server_tokens
    return prompt.input_tokens, prompt.output_tokens, _due(prompt), prompt.think_ns, expected


def _due(prompt: Prompt) -> int:
    if prompt.follows:
        return FOLLOWS
    return DRAWN if prompt.due_ns is None else prompt.due_ns


def rehearsed(settings: RunSettings) -> int:
    """How many prompts are sent off the record before the clock starts, retries left out."""
    return settings.num_warmups + (settings.ready_check_timeout_sec > 0)


def tell(folder: Path, known: dict[str, Any]) -> None:
    """Write what is known of the prompts."""
    (folder / ABOUT).write_bytes(orjson.dumps(known))


def files(folder: Path) -> list[str]:
    """The names of those files in a folder that hold requests; each index comes after what it tells of."""
    names = (ABOUT, SCHEDULE, *(f"{of}{name}" for of in (REHEARSAL, "") for name in PARTS))
    return [name for name in names if (folder / name).exists()]


def about(folder: Path) -> dict[str, Any]:
    """What is known of the prompts, JSON: what `write` was told, their sha256, how many they are and how many differ.

    `further` says that rows may follow those while the run goes on; `sent_before`, of how many of them the prompt is
    sent off the record.
    """
    found: dict[str, Any] = orjson.loads((folder / ABOUT).read_bytes())
    return found


def asked(folder: Path) -> Int64s | None:
    """What the prompts say of their due times: ns, DRAWN or FOLLOWS, shape (requests,); None where they say nothing."""
    due_ns: Int64s = np.ascontiguousarray(_rows((folder / "index").read_bytes())[: about(folder)["requests"], DUE])
    return None if (due_ns == DRAWN).all() else due_ns


def write_schedule(folder: Path, schedule: Schedule) -> None:
    """Write the schedule of the run beside its requests, in the place of one that was written before."""
    written = folder / f"{SCHEDULE}.new"
    np.concatenate(([schedule.duration_ns], schedule.due_ns)).astype(np.int64).tofile(written)
    written.replace(folder / SCHEDULE)


def schedule(folder: Path) -> Schedule:
    """Read the schedule of the run."""
    duration_ns, due_ns = np.split(np.fromfile(folder / SCHEDULE, dtype=np.int64), [1])
    return Schedule(due_ns, int(duration_ns[0]))


class Requests:
    """The written requests, read one at a time so that they never add up in memory.

    Asking beyond the last one looks whether more have been added, and starts over for good where none have.

    Args:
        folder: Where they lie.
        of: What the names of their files begin with.

    Attributes:
        prepared: How many there were before the clock started.
        repeats_answers: Whether any body has holes where answers of the server go.
        output_tokens: Mean of the planned output tokens, where a plan that is not known counts as 0.
    """

    def __init__(self, folder: Path, of: str = "") -> None:
        self._told: list[str] | None = None
        self._sources = open(folder / f"{of}sources", "rb")  # noqa: SIM115 - closed by __exit__
        self._file, self._index = (os.open(folder / f"{of}{name}", os.O_RDONLY) for name in ("bodies", "index"))
        # arrays give plain ints, several times faster than numpy scalars
        self._ends, self._inputs, self._outputs = array("q"), array("q"), array("q")
        self._expected, self._thinks, self._repeats = array("q"), array("q"), array("b")
        known = {} if of else about(folder)
        self._grows = True
        while self._grows:
            self._grow(READ)
        self._grows = bool(known.get("further"))
        self.prepared = known.get("requests", len(self))
        self.repeats_answers = bool(known.get("repeats_answers"))
        self.output_tokens = float(np.frombuffer(self._outputs, dtype=np.int64).clip(0).mean())

    def __len__(self) -> int:
        return len(self._ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._file)
        os.close(self._index)
        self._sources.close()

    def body(self, index: int) -> bytes:
        """The JSON body of request `index`."""
        # pread, not a mapping: pages read stay in the page cache and out of the process's resident memory
        row = self._row(index)
        start = self._ends[row - 1] if row else 0
        return os.pread(self._file, self._ends[row] - start, start)

    def tokens(self, index: int) -> tuple[int, int]:
        """Planned input and output tokens of request `index`."""
        row = self._row(index)
        return self._inputs[row], self._outputs[row]

    def server_tokens(self, index: int) -> int:
        """Input tokens that the server is expected to count of request `index`, -1 where that is not known."""
        return self._expected[self._row(index)]

    def think_ns(self, index: int) -> int | None:
        """How long after the answer to the request before it request `index` is due; None: it does not follow that."""
        return None if (think := self._thinks[self._row(index)]) < 0 else think

    def repeats(self, index: int) -> bool:
        """Whether request `index`, which goes beyond those prepared at first, asks what an earlier one has asked."""
        return self._row(index) != index or bool(self._repeats[index])

    def sources(self) -> list[str]:
        """Where each prompt comes from; the list grows as they do."""
        if self._told is None:
            self._told = []
            self._tell()
        return self._told

    def _row(self, index: int) -> int:
        if index < len(self._ends):
            return index
        while self._grows and index >= len(self._ends):
            self._grow(BLOCK)
        return index % len(self._ends)

    def _grow(self, most: int) -> None:
        """Take up so many more rows, as far as they are there; where there is none, no more are looked for."""
        rows = _rows(os.pread(self._index, most * WIDTH, len(self) * WIDTH))
        self._grows = len(rows) > 0
        thinks = np.where(rows[:, DUE] == FOLLOWS, rows[:, THINK], -1)
        repeats = rows[:, REPEATS].astype(np.int8)
        columns = (rows[:, END], rows[:, INPUT], rows[:, OUTPUT], rows[:, EXPECTED], thinks, repeats)
        kept = (self._ends, self._inputs, self._outputs, self._expected, self._thinks, self._repeats)
        for held, column in zip(kept, columns, strict=True):
            held.frombytes(np.ascontiguousarray(column).tobytes())
        self._tell()

    def _tell(self) -> None:
        if self._told is not None:
            self._told += map(orjson.loads, itertools.islice(self._sources, len(self) - len(self._told)))


def _rows(data: bytes) -> Int64s:
    """The whole rows in a stretch of an index, shape (rows, columns)."""
    rows: Int64s = np.frombuffer(data[: len(data) // WIDTH * WIDTH], dtype=np.int64).reshape(-1, REPEATS + 1)
    return rows

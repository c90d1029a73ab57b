"""Requests: the bodies of a run, ready to send, in files that a measuring process reads as it goes.

A folder holds `bodies` (JSON bodies end to end, with HOLE where an answer of the server is to be repeated), `index.npy`
(int64, one row per request: end offset in bodies, input tokens, output tokens, due time or DRAWN or FOLLOWS, think time
in ns, tokens that the server is expected to count or -1), `sources` (one JSON string a line) and `about.json`.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import orjson

from loadgen.digest import Digest
from loadgen.errors import BadInput
from loadgen.prompts import HOLE, Prompt
from loadgen.schedule import DRAWN, FOLLOWS, Int64s

END, INPUT, OUTPUT, DUE, THINK, EXPECTED = range(6)  # columns of the index
BLOCK, BLOCK_CHARACTERS = 1024, 1 << 22  # prompts, and characters of them, that are written at a time


def write(
    folder: Path,
    prompts: Iterable[Prompt],
    body: Callable[[Prompt], bytes],
    origin: Callable[[], dict[str, Any]],
    count: int,
    progress: Callable[[int], None] = lambda done: None,
    *,
    of_sessions: bool = False,
) -> None:
    """Write the requests of a run into `folder`.

    Args:
        folder: Where to; it exists.
        prompts: What to ask.
        body: Turns a prompt into the bytes of a request's body.
        origin: Called at the end: where the prompts come from, as JSON.
        count: How many prompts there are to be.
        progress: Told after each block how many are done.
        of_sessions: Whether `count` is how many sessions there are to be, whatever the number of their turns.

    Raises:
        BadInput: There are fewer, or more; or the first follows none.
    """
    digest, ends, planned, repeats = Digest(), [0], [], False
    waiting = _at_most(prompts, count + 1, of_sessions)  # one that never ends is one too many
    with open(folder / "bodies", "wb") as bodies, open(folder / "sources", "wb") as sources:
        while block := _block(waiting):
            made = [body(prompt) for prompt in block]
            data = b"".join(made)
            bodies.write(data)
            sources.write(b"".join(orjson.dumps(prompt.source) + b"\n" for prompt in block))
            ends += itertools.accumulate(map(len, made), initial=ends.pop())
            planned += [_planned(prompt) for prompt in block]
            repeats = repeats or HOLE in data
            for prompt in block:
                digest.add(prompt)
            progress(len(planned))
    index = np.column_stack((ends[1:], np.array(planned, dtype=np.int64).reshape(-1, EXPECTED)))
    number = int((index[:, DUE] != FOLLOWS).sum()) if of_sessions else len(planned)
    if number != count:
        given, what = number if number < count else "more", "sessions" if of_sessions else "prompts"
        problem = f"the data set gives {given} {what} where {count} were asked"
        raise BadInput("--num-prompts", problem, "ask for what it has, or mend the data set")
    if index[0, DUE] == FOLLOWS:
        raise BadInput("--dataset-name", "the first prompt follows another", "begin with the first turn of a session")
    np.save(folder / "index.npy", index)
    about = {"sha256": digest.sha256, "requests": len(planned), "distinct": digest.distinct}
    if repeats:
        about["repeats_answers"] = True
    (folder / "about.json").write_bytes(orjson.dumps(origin() | about))


def _at_most(prompts: Iterable[Prompt], count: int, of_sessions: bool) -> Iterator[Prompt]:
    """The first of them: so many prompts, or sessions."""
    for prompt in prompts:
        count -= not (of_sessions and prompt.follows)
        if count < 0:
            return
        yield prompt


def _block(waiting: Iterator[Prompt]) -> list[Prompt]:
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


def about(folder: Path) -> dict[str, Any]:
    """What `write` was told of the prompts, with their sha256, how many they are, and how many of them differ."""
    found: dict[str, Any] = orjson.loads((folder / "about.json").read_bytes())
    return found


def asked(folder: Path) -> Int64s | None:
    """What the prompts say of their due times: ns, DRAWN or FOLLOWS, shape (requests,); None where they say nothing."""
    due_ns: Int64s = np.array(np.load(folder / "index.npy", mmap_mode="r")[:, DUE])
    return None if (due_ns == DRAWN).all() else due_ns


class Requests:
    """The written requests, read one at a time so that they never add up in memory.

    Asking beyond the last one starts over: a run bounded by time alone may need more than were made.

    Attributes:
        repeats_answers: Whether any body has holes where answers of the server go.
        output_tokens: Mean of the planned output tokens, where a plan that is not known counts as 0.
    """

    def __init__(self, folder: Path) -> None:
        self._sources = folder / "sources"
        index = np.load(folder / "index.npy")
        starts = np.concatenate(([0], index[:-1, END]))
        # memoryviews give plain ints, several times faster than numpy scalars
        self._starts = starts.data
        self._sizes = np.ascontiguousarray(index[:, END] - starts).data
        self._inputs = np.ascontiguousarray(index[:, INPUT]).data
        self._outputs = np.ascontiguousarray(index[:, OUTPUT]).data
        self._expected = np.ascontiguousarray(index[:, EXPECTED]).data
        self.output_tokens = float(index[:, OUTPUT].clip(0).mean())
        follows = index[:, DUE] == FOLLOWS
        self._thinks = np.where(follows, index[:, THINK], -1).data if follows.any() else None
        self._begins = np.flatnonzero(~follows).data if follows.any() else range(len(index))
        self.repeats_answers = bool(about(folder).get("repeats_answers"))
        self._file = os.open(folder / "bodies", os.O_RDONLY)

    def __len__(self) -> int:
        return len(self._sizes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._file)

    def body(self, index: int) -> bytes:
        """The JSON body of request `index`."""
        # pread, not a mapping: pages read stay in the page cache and out of the process's resident memory
        row = index % len(self)
        return os.pread(self._file, self._sizes[row], self._starts[row])

    def tokens(self, index: int) -> tuple[int, int]:
        """Planned input and output tokens of request `index`."""
        row = index % len(self)
        return self._inputs[row], self._outputs[row]

    def server_tokens(self, index: int) -> int:
        """Input tokens that the server is expected to count of request `index`, -1 where that is not known."""
        return self._expected[index % len(self)]

    def think_ns(self, index: int) -> int | None:
        """How long after the answer to the request before it request `index` is due; None: it does not follow that."""
        if self._thinks is None or (think := self._thinks[index % len(self)]) < 0:
            return None
        return think

    def start(self, number: int) -> int:
        """The index of the request with which session `number` begins."""
        return self._begins[number % len(self._begins)]

    def sources(self) -> list[str]:
        """Where each prompt comes from; read it after the run."""
        return [orjson.loads(line) for line in self._sources.read_bytes().splitlines()]

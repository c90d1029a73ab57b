"""Requests: the bodies of a run, ready to send, in files that a measuring process reads as it goes.

A folder holds `bodies` (JSON bodies end to end), `index.npy` (int64, one row per request: end offset in
bodies, input tokens, output tokens, tokens that the server is expected to count or -1), `sources` (one JSON string a
line) and `about.json`.
"""

import hashlib
import itertools
import os
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import orjson

from loadgen.errors import BadInput
from loadgen.prompts import Prompt

BLOCK = 1024


def write(
    folder: Path,
    prompts: Iterable[Prompt],
    body: Callable[[Prompt], bytes],
    origin: Callable[[], dict[str, Any]],
    count: int,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Write the requests of a run into `folder`.

    Args:
        folder: Where to; it exists.
        prompts: What to ask.
        body: Turns a prompt into the bytes of a request's body.
        origin: Called at the end: where the prompts come from, as JSON.
        count: How many prompts there are to be.
        progress: Told after each block how many are done.

    Raises:
        BadInput: There are fewer prompts, or more.
    """
    digest, ends, planned = hashlib.sha256(), [0], []
    texts = array("q")  # a 64-bit hash of each: two of 50 million are the same by chance once in 10,000 runs
    waiting = itertools.islice(prompts, count + 1)  # one that never ends is one too many
    with open(folder / "bodies", "wb") as bodies, open(folder / "sources", "wb") as sources:
        while block := list(itertools.islice(waiting, BLOCK)):
            made = [body(prompt) for prompt in block]
            data = b"".join(made)
            bodies.write(data)
            digest.update(data)
            sources.write(b"".join(orjson.dumps(prompt.source) + b"\n" for prompt in block))
            ends += itertools.accumulate(map(len, made), initial=ends.pop())
            planned += [_planned(prompt) for prompt in block]
            texts.extend(hash(orjson.dumps(prompt.messages) if prompt.messages else prompt.text) for prompt in block)
            progress(len(planned))
    if len(planned) != count:
        given = len(planned) if len(planned) < count else "more"
        problem = f"the data set gives {given} prompts where {count} were asked"
        raise BadInput("--num-prompts", problem, "ask for what it has, or mend the data set")
    index = np.column_stack((ends[1:], np.array(planned, dtype=np.int64).reshape(-1, 3)))
    np.save(folder / "index.npy", index)
    about = {"sha256": digest.hexdigest(), "requests": len(planned), "distinct": len(np.unique(texts))}
    (folder / "about.json").write_bytes(orjson.dumps(origin() | about))


def _planned(prompt: Prompt) -> tuple[int, int, int]:
    return prompt.input_tokens, prompt.output_tokens, -1 if prompt.server_tokens is None else prompt.server_tokens


def about(folder: Path) -> dict[str, Any]:
    """What `write` was told of the prompts, with sha256 of all bodies, number of requests and of distinct prompts."""
    found: dict[str, Any] = orjson.loads((folder / "about.json").read_bytes())
    return found


class Requests:
    """The written requests, read one at a time so that they never add up in memory.

    Asking beyond the last one starts over: a run bounded by time alone may need more than were made.
    """

    def __init__(self, folder: Path) -> None:
        self._sources = folder / "sources"
        index = np.load(folder / "index.npy")
        starts = np.concatenate(([0], index[:-1, 0]))
        # memoryviews give plain ints, several times faster than numpy scalars
        self._starts = starts.data
        self._sizes = np.ascontiguousarray(index[:, 0] - starts).data
        self._inputs = np.ascontiguousarray(index[:, 1]).data
        self._outputs = np.ascontiguousarray(index[:, 2]).data
        self._expected = np.ascontiguousarray(index[:, 3]).data
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

    def sources(self) -> list[str]:
        """Where each prompt comes from; read it after the run."""
        return [orjson.loads(line) for line in self._sources.read_bytes().splitlines()]

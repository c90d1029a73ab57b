"""Readable: when the client could have read each token, by the log of the link."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np

from loadgen.testing.truth import Truth

# of the metronome: its id ends with the number of the request
TOKEN = re.compile(r'"id":"[a-z-]*(\d+)"[^\n]*"write_ns": *\d+\}\n\n')


def with_readable_times(truth: Truth, log: Path, start: int) -> Truth:
    """Return the truth of a run with the times at which the link made each token readable, in place
    of those at which the server wrote it.

    Args:
        truth: The server's.
        log: The log of the link.
        start: Where the run begins in the log, bytes.
    """
    times = readable_times(log, start)
    counts = np.diff(truth.starts).tolist()
    columns: tuple[list[int], list[int]] = [], []
    for number, count in zip(truth.number.tolist(), counts, strict=True):
        tokens = times.get(number, [])
        tokens += [(0, 0)] * (count - len(tokens))  # of an answer that did not come whole
        for column, moments in zip(columns, zip(*tokens[:count], strict=True), strict=True):
            column.extend(moments)
    write_ns, written_ns = (np.array(column, dtype=np.int64) for column in columns)
    return dataclasses.replace(truth, write_ns=write_ns, written_ns=written_ns)


def readable_times(log: Path, start: int) -> dict[int, list[tuple[int, int]]]:
    """Return between which two times, ns, each token became readable, by the number of the
    request.
    """
    times: dict[int, list[tuple[int, int]]] = {}
    unread: dict[int, str] = {}
    with log.open() as lines:
        lines.seek(start)
        for line in lines:
            port, before_ns, after_ns, data = json.loads(line)
            if data is None:  # a new connection
                unread[port] = ""
                continue
            text = unread.get(port, "") + data
            end = 0
            for token in TOKEN.finditer(text):
                times.setdefault(int(token[1]), []).append((before_ns, after_ns))
                end = token.end()
            unread[port] = text[end:]
    return times

"""Index: where the conversations of a ShareGPT file lie, kept between runs because to find out is to read it all."""

import hashlib
import logging
import os
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadgen import private
from loadgen.datasets import kept
from loadgen.whole import whole_file

WORTH_KEEPING = 16 << 20  # bytes of a file: a smaller one is looked through in some 20 ms
FORMAT = 1

logger = logging.getLogger("loadgen")


@dataclass(frozen=True, slots=True)
class Index:
    """What looking through a file has found; the arrays are int64, ascending.

    Attributes:
        starts: Byte positions of the opening brace of every whole object of the list.
        ends: One past the closing brace of each.
        numbers: Which of them hold two turns or more, counted from 0.
        cut_off: Whether the file ends in the middle.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.int64]
    cut_off: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file it is, and as of when: an index is good for exactly this."""

    path: Path
    stamp: tuple[int, ...]  # FORMAT, device, inode, bytes, ns of the last changes of content and of anything

    @classmethod
    def of(cls, path: Path, about: os.stat_result) -> "Identity":
        """Take it of a file that is open, so that it is that of what is read."""
        changes = (about.st_mtime_ns, about.st_ctime_ns)
        return cls(path.resolve(), (FORMAT, about.st_dev, about.st_ino, about.st_size, *changes))

    def kept(self) -> Index | None:
        """Return the index that an earlier run has kept, if there is one of the file as it is now."""
        try:
            with open(self._place(), "rb") as file, np.load(file, allow_pickle=False) as found:
                if tuple(found["stamp"].tolist()) != self.stamp:
                    return None
                return Index(found["starts"], found["ends"], found["numbers"], bool(found["cut_off"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # none is there, or it is no index: the file itself says it all

    def keep(self, index: Index) -> None:
        """Keep an index for later runs, where that is worth it and the file has not been changed just now."""
        *_, size, content_ns, anything_ns = self.stamp
        if size < WORTH_KEEPING or time.time_ns() - max(content_ns, anything_ns) < kept.SETTLED_NS:
            return
        try:
            kept.make_folder()
            with whole_file(self._place(), private.opener) as file:
                np.savez(
                    file,
                    stamp=np.array(self.stamp),
                    starts=index.starts,
                    ends=index.ends,
                    numbers=index.numbers,
                    cut_off=np.array(index.cut_off),
                )
        except OSError as error:
            logger.info("no index of %s is kept (%s)", self.path, error)

    def _place(self) -> Path:
        """One file for each path."""
        return kept.folder() / f"{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:32]}.npz"

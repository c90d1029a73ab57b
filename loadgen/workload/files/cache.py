"""The cache folder of data sets: prompts, hashes of large files, and facts of tokenizers, kept
between runs.

Each entry is a file. It is written under another name and renamed when it is complete. Reading an
entry updates its time; `make_room` removes the entries that were unused for the longest time.

`file_sha256` uses a cached hash while the file's size, times and inode are the same. It is stored
only for a file that has not changed for a while, because a file's clock is too coarse to show two
changes in a row.

Facts follow from a tokenizer: its sizes, its words, the tokens that its chat template adds.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from loadgen.errors import BadInput
from loadgen.util import files
from loadgen.util.packages import package_version

LIMIT = "LOADGEN_CACHE_BYTES"
DEFAULT_LIMIT_BYTES = 4 << 30
DRAFT = ".draft"  # suffix of a file that is being written
ABANDONED_S = 86_400.0  # age after which a draft has no writer any more
LOCK = ".lock"  # suffix of a file that is locked while an entry is made
LOCKED_S, POLL_S = 10.0, 0.01  # the longest wait for a lock, and the time between two attempts
BIG_BYTES = 1 << 20  # a smaller file is hashed in 2 ms
SETTLED_NS = 2_000_000_000  # minimum time since the last change
HASH_SUFFIX = ".sha256"
_made_here: set[str] = set()  # hashes of the tokenizers whose facts this process makes now


def folder() -> Path:
    """Return the cache folder; see `files.user_folder`."""
    return files.user_folder("XDG_CACHE_HOME", ".cache") / "datasets"


def limit() -> int:
    """Return the maximum size of the cache in bytes, from LOADGEN_CACHE_BYTES; 0 means that no
    prompts are kept.

    Raises:
        BadInput: The value is not a number of bytes.
    """
    value = os.environ.get(LIMIT) or str(DEFAULT_LIMIT_BYTES)
    if not value.isdecimal():
        raise BadInput(
            LIMIT,
            f"invalid number of bytes {value!r}",
            "write digits only, or 0 to keep no prompts",
        )
    return int(value)


def read(name: str) -> bytes | None:
    """Read a small entry that `write` has stored; None where it is missing or damaged."""
    path = folder() / name
    with contextlib.suppress(OSError):
        digest, _, content = path.read_bytes().partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() == digest:
            mark_used(path)
            return content
    return None


def write(name: str, content: bytes) -> None:
    """Store a small entry with its checksum. Does nothing where the folder cannot be written."""
    with Draft(folder() / name) as draft:
        draft.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        draft.commit()


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock, so that one process at a time makes an entry.

    The context is entered without the lock where the folder cannot be written, or another process
    holds it for long.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            file = stack.enter_context(
                open(folder() / f"{name}{LOCK}", "wb", opener=files.private_opener)
            )
            deadline = time.monotonic() + LOCKED_S
            while not _lock(file) and time.monotonic() < deadline:
                time.sleep(POLL_S)
        yield


def mark_used(path: Path) -> None:
    """Update the time of an entry, so that others are removed first."""
    with contextlib.suppress(OSError):
        os.utime(path)


def make_room(max_bytes: int) -> None:
    """Remove the entries unused for longest until the rest has at most `max_bytes`, and abandoned
    drafts.

    Raises:
        OSError: A file cannot be removed.
    """
    states = []
    for path in folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            states.append((path, path.stat()))
    total = 0
    for path, state in sorted(states, key=lambda item: -item[1].st_mtime):
        is_draft = path.suffix == DRAFT
        total += 0 if is_draft else state.st_size
        if time.time() - state.st_mtime > ABANDONED_S if is_draft else total > max_bytes:
            path.unlink(missing_ok=True)


def clear() -> None:
    """Remove the cache folder. A process that is reading an entry goes on.

    Raises:
        OSError: The folder cannot be removed.
    """
    if folder().is_dir():
        shutil.rmtree(folder())


class Draft:
    """An entry that is being written. An error of its file discards the entry, and is never raised.

    Args:
        path: The entry.
        max_bytes: Size above which the entry is discarded; the limit of the whole cache at
            `commit`. None: no limit.

    Attributes:
        digest: SHA-256 of everything written.
        size: Bytes written.
    """

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._draft_path = path.with_name(f"{os.urandom(16).hex()}{DRAFT}")
        self._file: IO[bytes] | None = None
        # digest: SHA-256 of everything written
        # size: bytes written
        self.digest, self.size = hashlib.sha256(), 0

    def __enter__(self) -> "Draft":
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = open(self._draft_path, "xb", opener=_open_nameless)
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def write(self, data: bytes) -> None:
        """Append data. Does nothing once the entry is discarded."""
        if self._file is None:
            return
        self.digest.update(data)
        self.size += len(data)
        try:
            if self._max_bytes is not None and self.size > self._max_bytes:
                self.discard()
            else:
                self._file.write(data)
        except OSError:
            self.discard()

    def commit(self) -> None:
        """Put the entry in place, and make room for it."""
        if self._file is None:
            return
        try:
            self._file.flush()
            if (
                not self._draft_path.exists()
            ):  # src_dir_fd: without one, the link in /proc is not followed
                os.link(
                    f"/proc/self/fd/{self._file.fileno()}",
                    self._draft_path,
                    src_dir_fd=self._file.fileno(),
                )
            self._file.close()
            self._draft_path.replace(self._path)
            if self._max_bytes is not None:
                make_room(self._max_bytes)
        except OSError:
            self.discard()
        self._file = None

    def discard(self) -> None:
        """Remove what has been written."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(OSError):
                self._draft_path.unlink()
        self._file = None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex; of a large file that has not changed, from the cache.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        if before.st_size < BIG_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}{HASH_SUFFIX}"
        cached, _, stamp = (read(name) or b"").decode("ascii").partition(" ")
        if cached and stamp == _stamp(before):
            return cached
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = os.fstat(file.fileno())
    settled = time.time_ns() - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED_NS
    if settled and _stamp(after) == _stamp(before):
        write(name, f"{digest} {_stamp(before)}".encode("ascii"))
    return digest


def get_or_make_fact(kind: str, tokenizer: str, key: Sequence[Any], make: Callable[[], Any]) -> Any:
    """Return a fact from the cache, or make and store it; where another process makes it, wait for
    that one.

    Args:
        kind: What the fact is: the suffix of its entry.
        tokenizer: The hash of the tokenizer.
        key: All else that it depends on besides the version of the package `tokenizers`, as JSON:
            the version of the rule, and so on.
        make: Makes the fact, as JSON other than null.
    """
    if (cached := find_fact(kind, tokenizer, key)) is not None:
        return cached
    with making_facts(tokenizer):
        if (cached := find_fact(kind, tokenizer, key)) is not None:
            return cached
        fact = make()
        write(_fact_entry(kind, tokenizer, key), orjson.dumps(fact))
        return fact


def find_fact(kind: str, tokenizer: str, key: Sequence[Any]) -> Any:
    """Return a fact from the cache; None if it is not there.

    The arguments are those of `get_or_make_fact`.
    """
    with contextlib.suppress(ValueError):  # there is none
        return orjson.loads(read(_fact_entry(kind, tokenizer, key)) or b"")
    return None


@contextlib.contextmanager
def making_facts(tokenizer: str) -> Iterator[None]:
    """Let other processes wait for the facts of this tokenizer while the context lasts."""
    if tokenizer in _made_here:
        yield
        return
    with locked(tokenizer):
        _made_here.add(tokenizer)
        try:
            yield
        finally:
            _made_here.remove(tokenizer)


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_nameless(path: str, flags: int) -> int:
    """Open a file without a name, which the system removes if the process is killed: an opener for
    `open`.

    Where the system has no such files, the file has its name from the start.
    """
    try:
        return os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError):  # only on Linux, and not on all of its file systems
        return files.private_opener(path, flags)


def _stamp(state: os.stat_result) -> str:
    return " ".join(
        map(str, (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    )


def _fact_entry(kind: str, tokenizer: str, key: Sequence[Any]) -> str:
    digest = hashlib.sha256(
        orjson.dumps([package_version("tokenizers"), tokenizer, *key])
    ).hexdigest()
    return f"{digest}.{kind}"

"""The store of a study: a SQLite database with its facts and trials, and a folder of files for each
start.

A start gets a row when it begins; its results are added in one transaction after its files are
written. A program may be killed at any time: the start that it leaves is marked as lost and
repeated.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput, LoadgenError, setting
from loadgen.lab.study.execute.trial import Answers, Failure, Trial, TrialRequest, WorkloadRun

VERSION = 2
DATABASE = "study.db"
LOCK = "lock"
FOLDERS = "starts"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE starts (
    id INTEGER PRIMARY KEY,
    step TEXT NOT NULL, block INTEGER NOT NULL, arm TEXT NOT NULL, attempt INTEGER NOT NULL,
    config TEXT NOT NULL,        -- hash of what was served
    state TEXT NOT NULL,         -- running, ended, lost or aside
    build TEXT,                  -- version of the engine
    began TEXT NOT NULL, seconds REAL, ready_s REAL,
    failure TEXT,                -- JSON: kind, cause, transient
    told TEXT,                   -- JSON: the configuration that the server told
    answered TEXT                -- JSON: which questions were answered right
);
CREATE UNIQUE INDEX once ON starts (step, block, arm, attempt) WHERE state = 'ended';
CREATE TABLE runs (
    start INTEGER NOT NULL REFERENCES starts (id),
    place INTEGER NOT NULL,      -- in the order in which the workloads were run
    workload TEXT NOT NULL,
    summary TEXT NOT NULL,       -- JSON: the result's numbers
    path TEXT NOT NULL,          -- of the whole result
    PRIMARY KEY (start, workload)
);
"""


class NotKept(LoadgenError):
    """A file of a store could not be written; the start it belongs to does not count.

    Args:
        what: The store, or the file.
        why: The system's error message.
    """

    def __init__(self, what: Path | str, why: str) -> None:
        super().__init__(
            f"{what} cannot be written ({why}); make room, and run the same command again"
        )


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Convert errors of writing into a store.

    Args:
        folder: Folder of the store.

    Raises:
        NotKept: Something could not be written.
    """
    try:
        yield
    except OSError as error:
        raise NotKept(error.filename or folder, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        raise NotKept(folder / DATABASE, str(error)) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a store for writing; the kernel releases the lock when the program ends.

    Args:
        folder: Folder of the store, created if there is none.

    Raises:
        BadInput: Another program holds the lock, or the folder cannot be created.
        NotKept: The lock file cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(
            setting.store, f"{folder} cannot be written ({error.strerror})", "name another folder"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            problem = f"process {holder} is running this study"
            raise BadInput(
                str(folder), problem, f"wait for it, or name another folder with {setting.store}"
            ) from None
        with kept(folder):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def holder(folder: Path) -> int | None:
    """Return the id of the process that holds the lock of a store; None: no process."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return int(os.pread(descriptor, 20, 0) or 0) or None
    finally:
        os.close(descriptor)


class Store:
    """An open store.

    Args:
        folder: Its folder; call `create` or `open` instead.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._database = sqlite3.connect(folder / DATABASE, isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")

    @classmethod
    @contextmanager
    def create(cls, folder: Path, facts: Mapping[str, Any]) -> Iterator[Store]:
        """Create a store in one transaction.

        Args:
            folder: Its folder, which exists and is locked.
            facts: Facts of the study and its environment, by name, as JSON.

        Raises:
            NotKept: It cannot be written.
        """
        with (
            kept(folder),
            closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as database,
        ):
            database.executescript(f"BEGIN; {_SCHEMA}")
            rows = [(name, _json(value)) for name, value in facts.items()]
            database.executemany("INSERT INTO facts VALUES (?, ?)", rows)
            database.execute(f"PRAGMA user_version = {VERSION}")
            database.execute("COMMIT")
        with cls.open(folder) as store:
            yield store

    @classmethod
    def remove_empty(cls, folder: Path) -> None:
        """Remove a store without trials, and its folder if nothing else is in it.

        The caller has locked it.
        """
        with cls.open(folder) as store:
            if store.trials():
                return
        for name in (DATABASE, LOCK):
            (folder / name).unlink()
        with suppress(OSError):
            folder.rmdir()

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Store]:
        """Open a store.

        Raises:
            BadInput: There is none, its version is unknown, or it cannot be read.
        """
        if not cls.exists(folder):
            raise BadInput(
                str(folder),
                "is not a store of a study",
                "name the folder that `loadgen tune run` has made",
            )
        try:
            store = cls(folder)
            with closing(store._database):
                version = store._database.execute("PRAGMA user_version").fetchone()[0]
                if version != VERSION:
                    problem = (
                        f"is a store of version {version}, and this loadgen reads version {VERSION}"
                    )
                    raise BadInput(
                        str(folder), problem, "use the loadgen that made it, or name another folder"
                    )
                yield store
        except sqlite3.Error as error:
            raise BadInput(
                str(folder), f"cannot be read ({error})", "check that its study.db is complete"
            ) from error

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether there is a complete store; creating one may have been interrupted."""
        path = folder / DATABASE
        if not path.is_file():
            return False
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                tables = database.execute(
                    "SELECT count(*) FROM sqlite_master WHERE name = 'facts'"
                ).fetchone()
        except sqlite3.Error:
            return True  # `open` reports what is wrong with it
        return bool(tables[0])

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the study and its environment, by name."""
        rows = self._database.execute("SELECT name, value FROM facts")
        return {name: orjson.loads(value) for name, value in rows}

    def note(self, name: str, value: Any) -> None:
        """Add or replace a fact.

        Raises:
            NotKept: It cannot be written.
        """
        with kept(self.folder):
            self._database.execute(
                "INSERT INTO facts VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (name, _json(value)),
            )

    def trials(self) -> dict[TrialRequest, Trial]:
        """Return all starts that have ended, by their requests."""
        runs: dict[int, dict[str, WorkloadRun]] = {}
        for start, workload, summary, path in self._database.execute(
            "SELECT start, workload, summary, path FROM runs ORDER BY start, place"
        ):
            runs.setdefault(start, {})[workload] = WorkloadRun(orjson.loads(summary), path)
        trials = {}
        for row in self._database.execute("SELECT * FROM starts WHERE state = 'ended' ORDER BY id"):
            request = TrialRequest(row["step"], row["block"], row["arm"], row["attempt"])
            failure, config, answers = (
                orjson.loads(row[name] or "null") for name in ("failure", "told", "answered")
            )
            trials[request] = Trial(
                request=request,
                **{name: row[name] for name in ("config", "build", "began", "seconds", "ready_s")},
                failure=Failure(**failure) if failure else None,
                server_config=config,
                runs=runs.get(row["id"], {}),
                folder=_place(row["id"]),
                answers=Answers.from_dict(answers) if answers else None,
            )
        return trials

    @property
    def lost_s(self) -> float:
        """How long the starts took that the budget cut short or that were set aside, s."""
        row = self._database.execute(
            "SELECT sum(seconds) FROM starts WHERE state IN ('lost', 'aside')"
        )
        return row.fetchone()[0] or 0.0

    def give_up_running(self, seconds: float | None = None) -> None:
        """Mark starts that have not ended as lost: the program that ran them is gone, or the
        budget was spent within them.

        Args:
            seconds: How long they took together; None: unknown.

        Raises:
            NotKept: It cannot be written.
        """
        with kept(self.folder):
            self._database.execute(
                "UPDATE starts SET state = 'lost', seconds = ? / (SELECT count(*) FROM starts "
                "WHERE state = 'running') WHERE state = 'running'",
                (seconds,),
            )

    def set_aside(self, step: str) -> None:
        """Let the starts of a step count no more; their files stay.

        Raises:
            NotKept: It cannot be written.
        """
        with kept(self.folder):
            self._database.execute(
                "UPDATE starts SET state = 'aside' WHERE step = ? AND state = 'ended'", (step,)
            )

    def begin(self, request: TrialRequest, config: str, began: str) -> tuple[int, Path]:
        """Record that a start begins.

        Args:
            request: Step, block and arm of the start.
            config: Hash of what is served.
            began: Start time, ISO 8601 in UTC.

        Returns:
            Its number, for `end`, and its folder, which exists and is empty.

        Raises:
            NotKept: It cannot be written.
        """
        with kept(self.folder):
            row = self._database.execute(
                "INSERT INTO starts (step, block, arm, attempt, config, state, began)"
                " VALUES (?, ?, ?, ?, ?, 'running', ?)",
                (request.step, request.block, request.arm, request.attempt, config, began),
            )
            number = row.lastrowid
            assert number is not None
            folder = self.folder / _place(number)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return number, folder

    def end(self, number: int, trial: Trial) -> None:
        """Record the outcome of a start.

        Raises:
            NotKept: It cannot be written; the start then counts as not ended.
        """
        parts = (trial.failure, trial.server_config, trial.answers and trial.answers.to_dict())
        runs = enumerate(trial.runs.items())
        start = (
            trial.began,  # after a wait for a quiet machine, later than `begin` knew
            *(trial.build, trial.seconds, trial.ready_s),
            *(None if part is None else _json(part) for part in parts),
            number,
        )
        rows = [
            (number, place, workload, _json(run.summary), run.path)
            for place, (workload, run) in runs
        ]
        with kept(self.folder):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.execute(
                    "UPDATE starts SET state = 'ended', began = ?, build = ?, seconds = ?, ready_s "
                    "= ?, failure = ?, told = ?, answered = ? WHERE id = ?",
                    start,
                )
                self._database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", rows)
            except BaseException:
                if self._database.in_transaction:  # on a full disk, SQLite has already rolled back
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def _place(number: int) -> str:
    return f"{FOLDERS}/{number:05}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()

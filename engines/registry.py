"""Registry: which servers this user's programs have started, so that what one left behind is found by the next."""

import contextlib
import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from loadgen.engines import processes
from loadgen.engines.processes import Process
from loadgen.util import private_files
from loadgen.util.atomic_file import atomic_file

KEEPER_S = 10.0  # for the keeper of a program that was killed just now to put its engine away


@dataclass(frozen=True, slots=True)
class Entry:
    """A server that was started and not yet stopped.

    Attributes:
        run_id: The tag of its processes.
        engine: The engine's name.
        base_url: Where it answers.
        log: Its log file.
        owner: The program that started it.
        keeper: Its keeper.
        process: The engine itself; None until it runs.
    """

    run_id: str
    engine: str
    base_url: str
    log: str
    owner: Process | None
    keeper: Process | None
    process: Process | None = None

    def survivors(self) -> list[Process]:
        """What still runs of it: what was recorded, and what bears its tag."""
        recorded = [process for process in (self.keeper, self.process) if process is not None and process.alive]
        return list({process.pid: process for process in recorded + processes.tagged(self.run_id)}.values())


@dataclass(frozen=True, slots=True)
class Orphan:
    """A server that its program left behind, and that still runs."""

    entry: Entry
    processes: tuple[Process, ...]

    def __str__(self) -> str:
        running = ", ".join(map(str, self.processes))
        return f"{self.entry.engine} at {self.entry.base_url}, started by a program that is gone, still runs: {running}"


class Registry:
    """A file for each server, in a folder of the user's.

    Args:
        folder: The folder; by default in the user's state folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or private_files.state_folder() / "engines"

    def write(self, entry: Entry) -> None:
        """Enter a server, or what is now known of it.

        Raises:
            OSError: The folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(self._path(entry.run_id), private_files.opener) as file:
            file.write(json.dumps(dataclasses.asdict(entry)).encode())

    def remove(self, run_id: str) -> None:
        """A server has been stopped."""
        with contextlib.suppress(OSError):  # it could not be written either
            self._path(run_id).unlink()

    def orphans(self) -> list[Orphan]:
        """The servers left behind that still run; entries of those that do not are removed.

        Waits for a keeper that is just putting its engine away.
        """
        found = []
        for path in sorted(self.folder.glob("*.json")):
            entry = _read(path)
            if entry is None or (entry.owner is not None and entry.owner.alive):
                continue
            if entry.keeper is not None:
                entry.keeper.wait_ended(KEEPER_S)
            left = tuple(entry.survivors())
            if left:
                found.append(Orphan(entry, left))
            else:
                path.unlink(missing_ok=True)
        return found

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"


def _read(path: Path) -> Entry | None:
    """An entry; None if it has gone meanwhile, or was written by another version."""
    try:
        told = json.loads(path.read_text())
        for name in ("owner", "keeper", "process"):
            told[name] = told[name] and Process(**told[name])
        return Entry(**told)
    except (OSError, ValueError, TypeError, KeyError):
        return None

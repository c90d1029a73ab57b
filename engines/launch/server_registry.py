"""Server registry: the servers that this user's programs have started, to find those that a program
left behind.

Beside it is the startup history: how long servers took to become ready, to show the usual time
while one starts.
"""

import contextlib
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadgen.engines.launch import processes
from loadgen.engines.launch.processes import Process
from loadgen.util import files
from loadgen.util.files import atomic_file

FILE = "start-times.json"
MAX_STARTS, MAX_SERVERS = 5, 200
SUPERVISOR_EXIT_S = 10.0  # for a supervisor to stop its engine after its program was killed


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A server that was started and is not yet stopped.

    Attributes:
        run_id: The tag of its processes.
        engine: The engine's name.
        base_url: URL of the server.
        log: Path of its log file.
        owner: The program that started it.
        keeper: Its supervisor; the name is part of the file format.
        process: The engine's process; None until it runs.
    """

    run_id: str
    engine: str
    base_url: str
    log: str
    owner: Process | None
    keeper: Process | None
    process: Process | None = None

    def survivors(self) -> list[Process]:
        """Return its processes that still run: the recorded ones and those with its tag."""
        recorded = [
            process
            for process in (self.keeper, self.process)
            if process is not None and process.alive
        ]
        return list(
            {process.pid: process for process in recorded + processes.tagged(self.run_id)}.values()
        )


@dataclass(frozen=True, slots=True)
class Orphan:
    """A server that still runs although its program has ended.

    Attributes:
        entry: Its entry.
        processes: Its processes that still run.
    """

    entry: ServerEntry
    processes: tuple[Process, ...]

    def __str__(self) -> str:
        running = ", ".join(map(str, self.processes))
        return (
            f"{self.entry.engine} at {self.entry.base_url}, started by a program that has "
            f"ended, still runs: {running}"
        )


class ServerRegistry:
    """A folder with one file for each server, in the user's state folder.

    Attributes:
        folder: The folder.
    """

    def __init__(self) -> None:
        self.folder = files.state_folder() / "engines"

    def write(self, entry: ServerEntry) -> None:
        """Write the entry of a server.

        Raises:
            OSError: The folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(self._path(entry.run_id), files.private_opener) as file:
            file.write(json.dumps(msgspec.to_builtins(entry)).encode())

    def remove(self, run_id: str) -> None:
        """Remove the entry of a server that was stopped."""
        with contextlib.suppress(OSError):  # then it could not be written either
            self._path(run_id).unlink()

    def orphans(self) -> list[Orphan]:
        """Return the servers that still run without their program, and remove the entries of those
        that do not run.

        Waits for supervisors that are stopping their engine.
        """
        orphans = []
        for path in sorted(self.folder.glob("*.json")):
            entry = _read(path)
            if entry is None or (entry.owner is not None and entry.owner.alive):
                continue
            if entry.keeper is not None:
                entry.keeper.wait_ended(SUPERVISOR_EXIT_S)
            left = tuple(entry.survivors())
            if left:
                orphans.append(Orphan(entry, left))
            else:
                path.unlink(missing_ok=True)
        return orphans

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"


def _read(path: Path) -> ServerEntry | None:
    """Return an entry; None if it has been removed, or was written by another version."""
    try:
        fields = json.loads(path.read_text())
        for name in ("owner", "keeper", "process"):
            fields[name] = fields[name] and Process(**fields[name])
        return ServerEntry(**fields)
    except (OSError, ValueError, TypeError, KeyError):
        return None


class StartupHistory:
    """The latest start-up times of each engine and model, in a file in the user's state folder.

    If two programs write at the same moment, one of the two times is lost.
    """

    def __init__(self) -> None:
        self._path = files.state_folder() / FILE

    def usual_s(self, engine: str, model: str) -> float | None:
        """Return the median start-up time, s; None if this engine has never started with this
        model here.
        """
        times = self._read().get(f"{engine} {model}")
        return statistics.median(times) if times else None

    def add(self, engine: str, model: str, seconds: float) -> None:
        """Add a start-up time, s; if the file cannot be written, the time is lost."""
        starts = self._read()
        server = f"{engine} {model}"
        starts[server] = [*starts.pop(server, []), round(seconds, 3)][-MAX_STARTS:]
        latest = dict(list(starts.items())[-MAX_SERVERS:])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_file(self._path, files.private_opener) as file:
                file.write(json.dumps(latest, indent=1).encode())

    def _read(self) -> dict[str, list[float]]:
        try:
            entries = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(entries, dict):
            return {}
        return {
            server: times
            for server, times in entries.items()
            if isinstance(times, list) and all(isinstance(time, int | float) for time in times)
        }

"""Startup history: how long servers took to become ready, to show the usual time while a server starts."""

import contextlib
import json
import statistics

from loadgen.util import files
from loadgen.util.files import atomic_file

FILE = "start-times.json"
MAX_STARTS, MAX_SERVERS = 5, 200


class StartupHistory:
    """The latest start-up times of each engine and model, in a file in the user's state folder.

    If two programs write at the same moment, one of the two times is lost.
    """

    def __init__(self) -> None:
        self._path = files.state_folder() / FILE

    def usual_s(self, engine: str, model: str) -> float | None:
        """Return the median start-up time, s; None if this engine has never started with this model here."""
        known = self._read().get(f"{engine} {model}")
        return statistics.median(known) if known else None

    def add(self, engine: str, model: str, seconds: float) -> None:
        """Add a start-up time, s; if the file cannot be written, the time is lost."""
        known = self._read()
        server = f"{engine} {model}"
        known[server] = [*known.pop(server, []), round(seconds, 3)][-MAX_STARTS:]
        latest = dict(list(known.items())[-MAX_SERVERS:])
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

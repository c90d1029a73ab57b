"""Start times: how long servers have taken until they answered, so that whoever waits knows what is usual."""

import contextlib
import json
import statistics

from loadgen.util import private_files
from loadgen.util.atomic_file import atomic_file

FILE = "start-times.json"
KEPT_STARTS, KEPT_SERVERS = 5, 200


class StartTimes:
    """The latest times of each engine and model, in the user's state folder.

    Who writes last wins: of two that are ready in the same moment one may be forgotten.
    """

    def __init__(self) -> None:
        self._path = private_files.state_folder() / FILE

    def usual_s(self, engine: str, model: str) -> float | None:
        """The median in seconds; None if it has never started here."""
        known = self._read().get(f"{engine} {model}")
        return statistics.median(known) if known else None

    def add(self, engine: str, model: str, seconds: float) -> None:
        """Note that a server has taken `seconds`; where that cannot be written, it is as if it had not started."""
        known = self._read()
        server = f"{engine} {model}"
        known[server] = [*known.pop(server, []), round(seconds, 3)][-KEPT_STARTS:]
        latest = dict(list(known.items())[-KEPT_SERVERS:])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_file(self._path, private_files.opener) as file:
                file.write(json.dumps(latest, indent=1).encode())

    def _read(self) -> dict[str, list[float]]:
        """What the file says, as far as it makes sense."""
        try:
            told = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(told, dict):
            return {}
        return {
            server: times
            for server, times in told.items()
            if isinstance(times, list) and all(isinstance(time, int | float) for time in times)
        }

"""Read a file of lines that another process is still writing."""

from pathlib import Path


class TailReader:
    """Reads the lines that were appended to a file since the last call.

    Args:
        path: The file. It need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def lines(self) -> list[bytes]:
        """Return the new complete lines. A line without its line end is left for the next call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(data) + len(end)
        return data.split(b"\n") if end else []

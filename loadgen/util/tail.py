"""Growing: a file of lines that another process is still writing."""

from pathlib import Path


class Growing:
    """Reads what has been added to a file since the last time.

    Args:
        path: Of the file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._read_up_to = path, 0

    def lines(self) -> list[bytes]:
        """The whole lines that are new; what has no line end yet is left for the next time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_up_to)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._read_up_to += len(whole) + len(end)
        return whole.split(b"\n") if end else []

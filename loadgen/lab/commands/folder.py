"""Folder: where a command of the lab keeps its files."""

from pathlib import Path

from loadgen.errors import BadInput


def made(folder: str) -> Path:
    """Make the folder of `--folder`, if it is not there.

    Raises:
        BadInput: It cannot be made, or is a file.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise BadInput("--folder", f"{folder} is a file", "name a folder, or a new one") from error
    except OSError as error:
        remedy = "name a folder that can be made"
        raise BadInput("--folder", f"{folder}: {error.strerror}", remedy) from error
    return Path(folder)

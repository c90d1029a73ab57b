"""Credential files: `@FILE` in place of an API key or of the value of a header."""

import os
import sys
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput

MAX_LENGTH = 65536  # characters; no header may be longer


def read_credential_files(given: dict[str, Any]) -> dict[str, Any]:
    """Replace `@FILE` in api_key and in the values of header by the content of the file.

    A file is read once, so it may be a pipe. Surrounding whitespace is removed. `@-` reads standard input.

    Raises:
        BadInput: A file cannot be read, is empty, or has more than one line.
    """
    found = dict(given)
    key = found.get("api_key")
    if isinstance(key, str) and key.startswith("@"):
        found["api_key"] = _read("--api-key", key[1:])
    if found.get("header"):
        found["header"] = tuple(_header(header) for header in found["header"])
    return found


def _header(header: str) -> str:
    name, equals, value = header.partition("=")
    return f"{name}={_read('--header', value[1:])}" if equals and value.startswith("@") else header


def _read(flag: str, path: str) -> str:
    try:
        if path == "-":
            text = sys.stdin.read(MAX_LENGTH + 1)
        else:
            with Path(os.path.expanduser(path)).open(encoding="latin-1") as file:
                text = file.read(MAX_LENGTH + 1)
    except OSError as error:
        raise BadInput(flag, f"@{path}: {error.strerror}", "name a readable file, or give the value itself") from error
    text = text.strip()
    if not text or len(text.splitlines()) > 1 or len(text) > MAX_LENGTH:
        raise BadInput(flag, f"@{path} does not contain exactly one line", "put only the value into the file")
    return text

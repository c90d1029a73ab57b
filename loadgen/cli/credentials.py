"""Credentials: read from where no other user sees them. A command line is public: `ps` shows it."""

import os
import sys
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.settings import KEY_VARIABLE

VISIBLE = f"--api-key: other users of this machine can read it while this runs; give @FILE, or set {KEY_VARIABLE}"
LONGEST = 65536  # characters; no header may be longer


def resolved(given: dict[str, Any]) -> dict[str, Any]:
    """The settings with the contents of files in the place of `@FILE`, in api_key and in the values of header.

    A file is read once, so it may be a pipe; space around its content is none of it. `-` is standard input.

    Raises:
        BadInput: A file that cannot be read, or holds nothing, or more than a line.
    """
    found = dict(given)
    key = found.get("api_key")
    if isinstance(key, str) and key.startswith("@"):
        found["api_key"] = _read("--api-key", key[1:])
    if found.get("header"):
        found["header"] = tuple(_header(header) for header in found["header"])
    return found


def on_the_command_line(given: dict[str, Any]) -> bool:
    """Whether flags hold an API key that other users of the machine can read."""
    return "api_key" in given and not given["api_key"].startswith("@")


def _header(header: str) -> str:
    name, equals, value = header.partition("=")
    return f"{name}={_read('--header', value[1:])}" if equals and value.startswith("@") else header


def _read(flag: str, path: str) -> str:
    try:
        if path == "-":
            text = sys.stdin.read(LONGEST + 1)
        else:
            with Path(os.path.expanduser(path)).open(encoding="latin-1") as file:
                text = file.read(LONGEST + 1)
    except OSError as error:
        raise BadInput(flag, f"@{path}: {error.strerror}", "name a file that holds the value, or give it") from error
    text = text.strip()
    if not text or len(text.splitlines()) > 1 or len(text) > LONGEST:
        raise BadInput(flag, f"@{path} does not hold one line", "put the value into it, and nothing else")
    return text

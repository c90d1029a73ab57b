"""Credentials from files and stdin: a command line is public, since `ps` shows it to every user."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.redaction import KEY_VARIABLE, header_name, is_credential

VISIBLE = "{}: other users of this machine can see it in the process list; {}"
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


def warn_of_visible(given: dict[str, Any]) -> None:
    """Log a warning for each secret on the command line.

    Args:
        given: What the command line gives, by the names of settings.
    """
    key = given.get("api_key", "")
    if not key.startswith("@") and is_credential("Authorization", f"Bearer {key}"):
        logging.warning(VISIBLE.format("--api-key", f"give @FILE, or set {KEY_VARIABLE}"))
    for header in given.get("header", ()):
        name, _, value = header.partition("=")
        if not value.startswith("@") and is_credential(name, value):
            logging.warning(VISIBLE.format(f"--header {header_name(header)}", f"give {header_name(header)}=@FILE"))
    urls = given.get("base_url", ())
    if any("@" in url for url in ((urls,) if isinstance(urls, str) else urls)):
        logging.warning(VISIBLE.format("--base-url with a password", "name the server in a --config file"))


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

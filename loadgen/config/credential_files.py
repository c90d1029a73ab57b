"""Credential files: `@FILE` in place of an API key, of a proxy, or of the value of a header."""

import os
import sys
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput, setting
from loadgen.util.redaction import split_header

MAX_CREDENTIAL_LENGTH = 65536  # characters; no header may be longer


def read_credential_files(settings: dict[str, Any]) -> dict[str, Any]:
    """Replace `@FILE` in api_key, proxy and the values of header by the content of the file.

    A file is read once, so it may be a pipe. Surrounding whitespace is removed. `@-` reads standard
    input.

    Args:
        settings: Fields of the settings by name; those of other names stay as they are.

    Returns:
        A copy with the content of the files.

    Raises:
        BadInput: A file cannot be read, is empty, or has more than one line.
    """
    settings = dict(settings)
    for name, flag in (("api_key", setting.api_key), ("proxy", setting.proxy)):
        value = settings.get(name)
        if isinstance(value, str) and value.startswith("@"):
            settings[name] = _read_credential(flag, value[1:])
    if settings.get("header"):
        headers = []
        for header in settings["header"]:
            name, value = split_header(header) or ("", "")
            headers.append(
                f"{name}={_read_credential(setting.header, value[1:])}"
                if value.startswith("@")
                else header
            )
        settings["header"] = tuple(headers)
    return settings


def _read_credential(flag: str, path: str) -> str:
    try:
        if path == "-":
            text = sys.stdin.read(MAX_CREDENTIAL_LENGTH + 1)
        else:
            with Path(os.path.expanduser(path)).open(encoding="latin-1") as file:
                text = file.read(MAX_CREDENTIAL_LENGTH + 1)
    except OSError as error:
        raise BadInput(
            flag, f"@{path}: {error.strerror}", "name a readable file, or give the value itself"
        ) from error
    text = text.strip()
    if not text or len(text.splitlines()) > 1 or len(text) > MAX_CREDENTIAL_LENGTH:
        raise BadInput(
            flag, f"@{path} does not contain exactly one line", "put only the value into the file"
        )
    return text

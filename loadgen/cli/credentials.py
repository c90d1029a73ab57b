"""Credentials on the command line, which is public: `ps` shows it to every user."""

import logging
from typing import Any

from loadgen.util.redaction import KEY_VARIABLE, header_name, is_credential

VISIBLE = "{}: other users of this machine can see it in the process list; {}"


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

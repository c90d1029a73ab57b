"""Program version: what `PROGRAM --version` prints, for engines whose version stands in no
installed file.
"""

import re

from loadgen.util.machine import program_output

TIMEOUT_S = 5.0


def program_version(executable: str, pattern: str) -> str | None:
    """Run `EXECUTABLE --version` and return the version in its output.

    Args:
        executable: The program; looked up in PATH.
        pattern: A regular expression, of which the first group is the version.

    Returns:
        The version; None if the program is missing, prints none, or does not end within 5 s.
    """
    text = program_output(executable, "--version", timeout_s=TIMEOUT_S, may_fail=True)
    match = None if text is None else re.search(pattern, text)
    return match[1] if match else None

"""Program version: what `PROGRAM --version` prints, for engines whose version stands in no installed file."""

import re
import shutil
import subprocess

TIMEOUT_S = 5.0


def program_version(executable: str, pattern: str) -> str | None:
    """Run `EXECUTABLE --version` and return the version in its output.

    Args:
        executable: The program; looked up in PATH.
        pattern: A regular expression, of which the first group is the version.

    Returns:
        The version; None if the program is missing, prints none, or does not end within 5 s.
    """
    path = shutil.which(executable)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(pattern, (done.stdout + done.stderr).decode(errors="replace"))
    return match[1] if match else None

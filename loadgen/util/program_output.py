"""What a program prints, where it is there, ends in time and does not fail."""

import shutil
import subprocess


def program_output(name: str, *arguments: str, timeout_s: float, may_fail: bool = False) -> str | None:
    """Run a program and return what it prints, standard error behind standard output.

    Args:
        name: The program; looked up in PATH.
        arguments: Its arguments.
        timeout_s: How long it may take, s.
        may_fail: Whether an exit status other than 0 counts, too.

    Returns:
        Its output; None if it is missing, fails, or does not end in time.
    """
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout + done.stderr).decode(errors="replace") if may_fail or done.returncode == 0 else None

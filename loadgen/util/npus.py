"""Names of this machine's Ascend NPUs, as `npu-smi info` prints them."""

import re
import shutil
import subprocess

PROGRAM = "npu-smi"
TIMEOUT_S = 20.0
# A row of a chip, "| 0     910B3      | OK      | ...": its number and name, then its health.
ROW = re.compile(r"^\|\s*\d+\s+(\S+)\s*\|\s*[A-Za-z]+\s*\|")


def names() -> list[str] | None:
    """Return the name of each NPU; None where npu-smi is missing or fails."""
    path = shutil.which(PROGRAM)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "info"], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout.decode(errors="replace")) if done.returncode == 0 else None


def parse(text: str) -> list[str]:
    """Return the name of each NPU in the output of `npu-smi info`, such as 910B3."""
    return [found[1] for line in text.splitlines() if (found := ROW.match(line.strip()))]

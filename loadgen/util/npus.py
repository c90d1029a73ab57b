"""Names of this machine's Ascend NPUs, as `npu-smi info` prints them."""

import re

from loadgen.util.program_output import program_output

PROGRAM = "npu-smi"
TIMEOUT_S = 20.0
# A row of a chip, "| 0     910B3      | OK      | ...": its number and name, then its health.
ROW = re.compile(r"^\|\s*\d+\s+(\S+)\s*\|\s*[A-Za-z]+\s*\|")


def names() -> list[str] | None:
    """Return the name of each NPU; None where npu-smi is missing or fails."""
    text = program_output(PROGRAM, "info", timeout_s=TIMEOUT_S)
    return None if text is None else parse(text)


def parse(text: str) -> list[str]:
    """Return the name of each NPU in the output of `npu-smi info`, such as 910B3."""
    return [found[1] for line in text.splitlines() if (found := ROW.match(line.strip()))]

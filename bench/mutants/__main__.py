"""`python -m bench.mutants [NAME...]`: tell each lie in a copy of the source; every one must be
noticed, by name.

Prints a table of what noticed what, and how soon after the lie was told; ends with 1 if a lie went
unnoticed, or if what should notice it is red without it, which would prove nothing.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.mutants.copy import Copy
from bench.mutants.lies import LIES
from bench.mutants.mutant import Check, Mutant
from tests.helpers.documents import between
from tests.helpers.source import ROOT

ATTEMPTS = 3  # what judges times may be disturbed by others, with and without the lie

DOCUMENT = ROOT / "bench" / "results" / "mutants.md"
BEGIN, END = "<!-- lies: made by `make mutants FLAGS=--write` -->", "<!-- end of lies -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    parser.add_argument("name", nargs="*", help="lies, by a part of their names; all by default")
    flags = parser.parse_args(argv)
    lies = [lie for lie in LIES if not flags.name or any(part in lie.name for part in flags.name)]
    lines = ["| lie | noticed | after | by |", "|---|---|---:|---|"]
    print("\n".join(lines))
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="loadgen-mutants-") as folder:
        copy = Copy(Path(folder))
        for lie in lies:
            word, seconds = judge(copy, lie)
            unnoticed += word != "yes"
            lines.append(f"| {lie.name} | {word} | {seconds:.0f} s | {lie.caught_by} |")
            print(lines[-1], flush=True)
    if flags.write:
        between(DOCUMENT, BEGIN, "\n".join(lines), END)
    return 1 if unnoticed else 0


def judge(copy: Copy, lie: Mutant) -> tuple[str, float]:
    """Whether it is noticed, and after how many seconds."""
    if all(copy.is_red(lie.caught_by) for _ in range(ATTEMPTS)):
        return "RED ANYWAY", 0.0
    copy.edit(lie.edits)
    try:
        started = time.monotonic()
        noticed = all(copy.is_red(lie.caught_by) for _ in range(ATTEMPTS if is_timed(lie) else 1))
        return "yes" if noticed else "NO", time.monotonic() - started
    finally:
        copy.revert(lie.edits)


def is_timed(lie: Mutant) -> bool:
    """Whether what notices it looks at real time, so that it must notice it every time to be
    more than chance.
    """
    watcher = lie.caught_by
    return isinstance(watcher, Check) or watcher.node.startswith(("tests/integration", "tests/qa"))


if __name__ == "__main__":
    sys.exit(main())

"""The accuracy table: `python -m bench.accuracy [--write] [TESTS...]`, or `make accuracy`.

Measures everything there is a row for, and prints the table. Exit code as pytest's.
"""

import argparse
import sys
from collections.abc import Sequence

import pytest

from bench.accuracy.stillness import patience
from bench.accuracy.table import Table, markdown, text
from loadgen import __version__
from loadgen.util import machine
from tests.helpers.documents import between, found_between
from tests.helpers.source import ROOT

FOLDER = ROOT / "tests/qa/accuracy"
PATIENCE_S = 300.0  # for still moments, in all
MAX_S = 3600  # of one test: it may be repeated, and the soak is long
IMPORTED = (
    "ignore:Module already imported:pytest.PytestAssertRewriteWarning"  # loadgen, by this module
)
DOCUMENT = ROOT / "bench" / "results" / "accuracy.md"
BEGIN, END = "<!-- table: made by `make accuracy FLAGS=--write` -->", "<!-- end of table -->"


def heading() -> str:
    """Where and with what it was measured."""
    about = machine.describe()
    return (
        f"loadgen {__version__}; {about['cpu']}, {about['usable_cores']} cores, shared with the "
        f"server; {about['system']}; Python {about['python']}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy", description="Measure how accurate loadgen is."
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"put the rows into the table of {DOCUMENT.relative_to(ROOT)}",
    )
    parser.add_argument(
        "tests", nargs="*", default=[str(FOLDER)], help="these alone, as pytest's arguments"
    )
    flags = parser.parse_args(argv)
    patience.left_s = PATIENCE_S
    table = Table()
    options = ["-m", "", "-q", "--tb=line", f"--timeout={MAX_S}", "-W", IMPORTED]
    code = pytest.main([*flags.tests, *options], plugins=[table])
    print(f"\n{heading()}\n\n{text(table.rows)}")
    if flags.write:
        rows = markdown(table.rows, found_between(DOCUMENT, BEGIN, END))
        between(DOCUMENT, BEGIN, f"{heading()}\n\n{rows}", END)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())

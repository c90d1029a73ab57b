"""Instructions are read from callgrind's files, calls are counted by function, and both are
compared by their medians.
"""

from pathlib import Path

import pytest

from bench.performance.counted_run import Calls
from bench.performance.instructions import Counts, instructions_in, report
from loadgen.util.number_format import plural
from tests.helpers.documents import cells_of


def test_the_sum_of_all_instructions_is_read() -> None:
    assert instructions_in("version: 1\nevents: Ir\nfn=(0)\n1 5\ntotals: 30820286\n") == 30_820_286
    with pytest.raises(ValueError, match="no totals"):
        instructions_in("version: 1\n")


def test_two_checkouts_are_compared_by_their_medians() -> None:
    rounds = [
        [
            Counts(90.0, 10.0, {"a.f": 1.0}),
            Counts(100.0, 12.0, {"a.f": 2.0, "a.rare": 0.002}),
            Counts(500.0, 13.0, {"a.f": 3.0, "a.rare": 0.004}),
        ],
        3 * [Counts(80.0, 10.0, {"a.f": 0.5, "a.g": 0.5})],
    ]
    text = report(rounds, [Path("/a"), Path("/b")])
    assert "| instructions per request of 2 tokens | 100 | 80.0 | 1.250 |" in text
    assert "| instructions per further event | 12.0 | 10.0 | 1.200 |" in text
    assert "| calls of Python functions per request | 2.00 | 1.00 | 2.002 |" in text
    assert cells_of(text.rpartition("\n\n")[2]) == [
        ("`a.f`", "2.00", "0.50"),
        ("`a.g`", "0.00", "0.50"),
        ("1 others", "0.00", "0.00"),
    ]


def test_calls_are_counted_by_module_and_function() -> None:
    calls = Calls()
    with calls.counting():
        for count in (1, 2):
            plural(count, "request")
    plural(3, "request")
    assert calls.by_function()["util.number_format.plural"] == 2

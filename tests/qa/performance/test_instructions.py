"""Instructions are read from callgrind's files, and compared by their medians."""

from pathlib import Path

import pytest

from bench.performance.instructions import Instructions, instructions_in, report


def test_the_sum_of_all_instructions_is_read() -> None:
    assert instructions_in("version: 1\nevents: Ir\nfn=(0)\n1 5\ntotals: 30820286\n") == 30_820_286
    with pytest.raises(ValueError, match="no totals"):
        instructions_in("version: 1\n")


def test_two_checkouts_are_compared_by_their_medians() -> None:
    rounds = [
        [Instructions(90.0, 10.0), Instructions(100.0, 12.0), Instructions(500.0, 13.0)],
        [Instructions(80.0, 10.0), Instructions(100.0, 10.0), Instructions(101.0, 10.0)],
    ]
    text = report(rounds, [Path("/a"), Path("/b")])
    assert "| per request of 2 tokens | 100 | 100 | 1.000 |" in text
    assert "| per further event | 12 | 10 | 1.200 |" in text

"""The bench of TLS has a figure for every client and a ratio for every pair; their values are
not tested.
"""

import sys

import pytest

from bench.performance import tls


@pytest.mark.parametrize("before", [None, sys.executable])
def test_every_client_has_its_turn(before: str | None) -> None:
    turns = tls.clients(before)
    found = tls.measure(turns, tls.QUICK, 1)
    assert found.costs.keys() == {client.name for client in turns}
    assert all(cost > 0 for (cost,) in found.costs.values())
    text = tls.report(found)
    assert (f"| {tls.OURS} / {tls.BEFORE} |" in text) == (before is not None)
    assert f"| {tls.OURS} / {tls.PLAIN} |" in text


def test_interval_of_ten_ratios_is_of_their_ranks() -> None:
    rounds = 10
    found = tls.Findings(
        tls.QUICK, {tls.OURS: [2.0 + i for i in range(rounds)], tls.PLAIN: [1.0] * rounds}
    )
    found.load_averages += [0.5] * rounds
    assert "| TLS / without TLS | 6.50 | 2.00 to 11.0 | 2.00 | 11.0 |" in tls.report(found)

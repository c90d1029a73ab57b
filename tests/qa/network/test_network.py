"""Network: the client error of each printed figure is at least its true error where the network
loses, delays and reorders segments.
"""

import pytest

from bench.network.conditions import NETWORKS, Network
from bench.network.namespaces import NoNamespaces
from bench.network.trial import trials

RUNS = 5
# of the tokens, beside programs that let the kernel hand over segments late
MAX_OUTSIDE = 0.005


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
async def test_client_error_covers_the_truth(network: Network) -> None:
    try:
        runs = await trials(network, RUNS)
    except NoNamespaces as missing:
        pytest.skip(f"no network can be made here: {missing}")
    assert [list(map(str, run.broken)) for run in runs if run.broken] == []
    tokens = sum(run.tokens for run in runs)
    assert sum(run.early + run.late for run in runs) <= MAX_OUTSIDE * tokens
    if network.loss >= 0.005 or network.reorder:
        assert sum(run.reordered for run in runs), "the link lost or reordered nothing"

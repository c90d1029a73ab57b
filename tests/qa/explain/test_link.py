"""What is said of an engine's steps is as near to the truth, and as often refused, where the way to
the server takes 30 ms and loses one packet in a hundred.
"""

from pathlib import Path

import pytest

from bench.network.conditions import Network
from bench.network.namespaces import NoNamespaces, two_hosts
from bench.network.trial import linked
from tests.qa.explain.plants import drawn, run
from tests.qa.explain.test_plants import MINUTES, SEED, by_stamps, check_costs, check_side

FAR = Network("RTT 30 ms, 1 % lost", 30, loss=0.01)
ROUND_TRIP_MS = 30.0
REFUSED = ("budget", "events")  # the plants whose steps do not show
PLANTS = ("healthy", "slots", "kv", "prefill", "interfere", "frontend", "pause", "decode", *REFUSED)


@pytest.mark.timeout(30 * MINUTES)
def test_steps_are_known_or_refused_through_a_link_that_loses_packets(tmp_path: Path) -> None:
    print(f"EXPLAIN_SEED={SEED}")
    printed = 0
    try:
        with two_hosts() as link, linked(FAR, *link, tmp_path / "readable"):
            for name in PLANTS:
                records = tmp_path / f"{name}.jsonl"
                run(plant := drawn(SEED)[name], records, SEED, link)
                explanation = by_stamps(records)
                causes = [cause.name for cause in explanation.causes]
                print(name, causes, explanation.steps or explanation.no_steps)
                check_side(plant, explanation)
                check_costs(plant, explanation)
                printed += explanation.steps is not None
                assert name not in REFUSED or explanation.steps is None
                assert explanation.mean_ms["outside"] >= 0.9 * ROUND_TRIP_MS
    except NoNamespaces as missing:
        pytest.skip(f"no network can be made here: {missing}")
    assert printed

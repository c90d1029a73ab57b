"""Costs by request and by token, less the startup cost of a run."""

import pytest

from bench.peers.costs import Costs
from bench.peers.made_up import trial


def of(**cpu_s: float) -> Costs:
    return Costs({name: [trial(name, cpu_s=value)] for name, value in cpu_s.items()})


def test_the_start_is_taken_off() -> None:
    costs = of(S=2.0, W1=12.0)
    assert costs.us_per_token("W1") == pytest.approx(100.0)  # 10 s by 100,000 tokens
    assert costs.us_per_request("W1") == pytest.approx(5_000.0)


def test_requests_and_token_events_are_told_apart_by_two_loads() -> None:
    request_us, event_us = 300.0, 10.0
    costs = of(
        S=1.0,
        W1=1.0 + 2_000 * (request_us + 50 * event_us) / 1e6,
        W2=1.0 + 4_000 * (request_us + 20) / 1e6,
    )
    assert costs.fit == pytest.approx((request_us, event_us))


def test_cost_of_a_load_that_was_not_run_is_unknown() -> None:
    assert of(W1=3.0).us_per_token("W1") is None
    assert of(S=1.0, W1=3.0).fit is None
    assert Costs({}).startup_s is None

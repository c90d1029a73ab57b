"""Speculative decoding: rate, length and positions from the counters of a run."""

import pytest

from loadgen.metrics.server.telemetry import SpecDecode, Telemetry
from tests.helpers.server_scrapes import telemetry

BEFORE = {
    "drafts": 10,
    "drafted_tokens": 30,
    "accepted_tokens": 30,
    "accepted_at_0": 10,
    "accepted_at_1": 10,
}
AFTER = {
    "drafts": 110,
    "drafted_tokens": 330,
    "accepted_tokens": 180,
    "accepted_at_0": 90,
    "accepted_at_1": 60,
}


def test_counters_of_a_run_are_those_between_its_scrapes() -> None:
    found = SpecDecode.of(telemetry(BEFORE, AFTER | {"accepted_at_2": 20}))
    assert found == SpecDecode(0.5, 2.5, 100, 300, 150, (0.8, 0.5, 0.2))


def test_counters_of_several_servers_add_up() -> None:
    one = telemetry(BEFORE, AFTER)
    assert SpecDecode.of(Telemetry((*one.sources, *one.sources))) == SpecDecode(
        0.5, 2.5, 200, 600, 300, (0.8, 0.5)
    )


def test_gauges_of_sglang_are_averaged_over_the_run() -> None:
    batches = [{"batch_acceptance": rate, "batch_accept_length": 4 * rate} for rate in (0.4, 0.6)]
    found = SpecDecode.of(telemetry({"drafts": 1}, {"drafts": 8}, *batches))
    assert found == SpecDecode(0.5, pytest.approx(2.0), 7, None, None, ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said", [Telemetry(), telemetry({"running": 0}, {"running": 0}), telemetry(BEFORE, BEFORE)]
)
def test_a_run_without_drafts_has_none(said: Telemetry) -> None:
    assert SpecDecode.of(said) is None

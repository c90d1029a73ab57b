"""The demo asks for answers that the machine can carry, over connections that are open."""

import pytest

from loadgen.cli.commands.demo import MAX_TOKENS, MIN_TOKENS, connections_for, tokens_for


@pytest.mark.parametrize(
    ("loop_busy", "cores_busy", "tokens"),
    [
        (0.2, 0.1, 32),
        (0.1, 0.2, 32),
        (0.9, 1.0, MIN_TOKENS),
        (0.01, 0.0, MAX_TOKENS),
        (0.0, 0.0, MAX_TOKENS),
    ],
)
def test_busier_of_loop_and_cores_decides_the_length(
    loop_busy: float, cores_busy: float, tokens: int
) -> None:
    assert tokens_for(loop_busy, cores_busy) == tokens


def test_connections_are_for_the_requests_in_flight_and_three_deviations_more() -> None:
    assert connections_for(400) == 460

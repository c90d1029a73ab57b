"""The demo asks for answers that the machine can carry."""

import pytest

from loadgen.cli.commands.demo import MAX_TOKENS, MIN_TOKENS, tokens_for


@pytest.mark.parametrize(
    ("loop_busy", "cores_busy", "tokens"),
    [
        (0.25, 0.1, 32),
        (0.1, 0.25, 32),
        (0.9, 1.0, MIN_TOKENS),
        (0.01, 0.0, MAX_TOKENS),
        (0.0, 0.0, MAX_TOKENS),
    ],
)
def test_busier_of_loop_and_cores_decides_the_length(
    loop_busy: float, cores_busy: float, tokens: int
) -> None:
    assert tokens_for(loop_busy, cores_busy) == tokens

"""--retry is a list of statuses with a number of attempts; anything else is refused with the field and the remedy."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.user_behavior import Retry
from loadgen.errors import BadInput


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("429", Retry((429,), 3)),
        ("429,503", Retry((429, 503), 3)),
        ("429, 503", Retry((429, 503), 3)),
        ("503@attempts=2", Retry((503,), 2)),
    ],
)
def test_statuses_are_retried_a_number_of_times(text: str, meaning: Retry) -> None:
    assert Retry.parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("429;503", "invalid value"),
        ("429@tries=3", "invalid value"),
        ("200", "200 is not the status of an error"),
        ("429,600", "600 is not the status of an error"),
        ("429@attempts=1", "1 attempts"),
        ("429@attempts=101", "101 attempts"),
    ],
)
def test_other_values_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refusal:
        RunSettings(retry=text).checked()
    assert refusal.value.field == "--retry"


@pytest.mark.parametrize("attempts", ["1", "101", "99999"])
def test_attempts_out_of_range_are_refused_with_the_range(attempts: str) -> None:
    with pytest.raises(BadInput) as refused:
        Retry.parse(f"429@attempts={attempts}")
    assert str(refused.value) == f"--retry: {attempts} attempts; give 2 to 100 attempts, or leave --retry out"

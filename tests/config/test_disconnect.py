"""--disconnect is a share of requests and a moment; anything else is refused with the field and the remedy."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.user_behavior import Disconnect
from loadgen.errors import BadInput


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("5%@tokens=10", Disconnect(0.05, tokens=10)),
        ("0.5%@after=200ms", Disconnect(0.005, after_s=0.2)),
        (" 100%@after=0 ", Disconnect(1.0, after_s=0.0)),
    ],
)
def test_a_share_leaves_after_tokens_or_a_time(text: str, meaning: Disconnect) -> None:
    assert Disconnect.parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("5%", "invalid value"),
        ("5@tokens=10", "invalid value"),
        ("5%@bytes=10", "invalid value"),
        ("0%@tokens=10", "a share of 0%"),
        ("101%@tokens=10", "a share of 101%"),
        ("5%@tokens=0", "'0' is not a number of tokens"),
        ("5%@tokens=1.5", "'1.5' is not a number of tokens"),
        ("5%@after=soon", "'soon' is not a time"),
        ("100%@after=200", "200 has no unit; write after=200ms or after=200s"),
        ("5%@after=25h", "25h after a request was sent"),
        ("5%@after=-1s", "-1s after a request was sent"),
    ],
)
def test_other_values_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refusal:
        RunSettings(disconnect=text).checked()
    assert refusal.value.field == "--disconnect"


def test_answers_in_one_piece_have_no_tokens_after_which_to_leave() -> None:
    settings = RunSettings(disconnect="5%@tokens=10", disable_stream=True, percentile_metrics="e2el")
    with pytest.raises(BadInput, match="where answers come in one piece"):
        settings.checked()
    settings.replace(disconnect="5%@after=1s").checked()

"""The live view of embeddings and scores, which have no tokens."""

import pytest

from loadgen.cli.live.progress_line import Pace, describe
from tests.helpers.live_text import SETTINGS, running, seen

MOMENTS = [running(second / 4, streams=False) for second in range(1, 150)]
POOLING = SETTINGS.replace(backend="openai-embeddings")
WORDS = ("TTFT", "ICL", "ITL", "TPOT", "tokens", "128 out")


@pytest.mark.parametrize("width", [80, 140])
def test_the_frame_has_e2el_alone(width: int) -> None:
    text = "\n".join(seen(*MOMENTS, settings=POOLING, width=width, height=40))
    assert "E2EL" in text
    assert [word for word in WORDS if word in text] == []


def test_the_line_counts_no_tokens() -> None:
    pace = Pace.between(MOMENTS[0], MOMENTS[-1])
    assert "token" not in describe(MOMENTS[-1], pace)
    assert "token" in describe(running(37.25), pace)

"""The screenshots of docs/pictures show what is rendered today."""

from pathlib import Path

import pytest

from bench.screenshots.cases import DIGESTS, digests

pytestmark = pytest.mark.slow


def test_screenshots_show_what_is_rendered_today(tmp_path: Path) -> None:
    remedy = "the screenshots are of an older state: make screenshots"
    assert digests(tmp_path) == DIGESTS.read_text(), remedy

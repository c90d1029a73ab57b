"""Every command of the README and docs/ is run, unless its page names a need that a test lacks."""

from pathlib import Path

import pytest

from tests.helpers.source import ROOT
from tests.slow.docs.blocks import blocks, pages
from tests.slow.docs.playing import Play, hub_cache


@pytest.fixture(scope="session")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hub_cache(tmp_path_factory.mktemp("huggingface"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_work_in_their_order(page: Path, tmp_path: Path, cached: Path) -> None:
    with Play(tmp_path, cached) as play:
        for block in blocks(page):
            play.block(block)

"""What readers of other projects told of loadgen's files, when they were run last, stands in the
files of today. `tests/qa/release` runs the readers.
"""

import json
from pathlib import Path

import pytest

from tests.helpers.foreign_readers import READERS, TOLD, expected, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("name", READERS)
def test_files_have_what_a_reader_has_told(name: str, folder: Path) -> None:
    assert expected(READERS[name], folder) == pytest.approx(json.loads(TOLD.read_text())[name])

"""Tokenizers that several modules of tests use: some take long to train or to build."""

from pathlib import Path

import pytest

from loadgen.datasets.tokenizer import load
from tests import tokenizers_from_packages as packages
from tests import tokenizers_trained as trained

SIMULATOR = Path(__file__).parents[2] / "engines" / "sim" / "tokenizer.json"
REAL = (packages.qwen3, packages.qwen3_5, packages.smollm2, packages.mistral, packages.tekken)
OWN = (trained.wordpiece, trained.unigram, trained.word_level, trained.superwords)


def simulator(folder):
    return SIMULATOR


@pytest.fixture(
    scope="session",
    params=[*(pytest.param(make, marks=pytest.mark.real_data) for make in REAL), *OWN, simulator],
    ids=lambda make: make.__name__,
)
def tokenizer(request, tmp_path_factory):
    """One tokenizer of every family; those that take seconds to build are kept between runs of the tests."""
    kept = request.param in REAL
    folder = packages.kept_folder(request.config) if kept else tmp_path_factory.mktemp("tokenizers")
    try:
        return load(str(request.param(folder)))
    except ImportError as error:
        pytest.skip(f"{error}: pip install loadgen[real]")

"""What several modules of tests use: tokenizers, some of which take long to train or to build,
and files of agents.
"""

import json
from functools import cache

import pytest

from loadgen.workload.datasets.agentic.agentic_dataset import AgentFile
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import real_tokenizers as packages
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
REAL = (packages.qwen3, packages.qwen3_5, packages.smollm2, packages.mistral, packages.tekken)
OWN = (trained.wordpiece, trained.unigram, trained.word_level, trained.superwords)


def simulator(folder):
    return SIMULATOR


@cache
def real(make, folder):
    """Loaded once a process: pytest keeps the fixture of one parameter at a time, and each
    module asks for all.
    """
    return load(str(make(folder)))


@pytest.fixture(
    scope="session",
    params=[*(pytest.param(make, marks=pytest.mark.real_data) for make in REAL), *OWN, simulator],
    ids=lambda make: make.__name__,
)
def tokenizer(request, tmp_path_factory):
    """One tokenizer of every family; those that take seconds to build are kept between runs of
    the tests.
    """
    if request.param not in REAL:
        return load(str(request.param(tmp_path_factory.mktemp("tokenizers"))))
    try:
        return real(request.param, packages.kept_folder(request.config))
    except ImportError as error:
        pytest.skip(f"{error}: pip install -e '.[real]'")


@pytest.fixture
def recorded(tmp_path):
    """Reads the sessions of a file with these rows, one a line."""

    def of(*rows, name="auto"):
        path = tmp_path / "sessions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return list(AgentFile(path, name).sessions())

    return of

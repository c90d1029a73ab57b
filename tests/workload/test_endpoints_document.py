"""The API in docs/add-endpoint.md can be loaded, and passes the tests that every API must pass."""

import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from loadgen.config.backends import BACKENDS, COMPLETIONS
from loadgen.testing.endpoint_conformance import Case, EndpointOnPaper
from loadgen.workload import endpoints
from tests.helpers.endpoint_guide import BLOCKS
from tests.helpers.source import ROOT


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """The modules that the page shows, by name."""
    folder, modules = tmp_path_factory.mktemp("package"), dict[str, ModuleType]()
    for name in ("loadgen_tgi", "test_loadgen_tgi"):
        path = Path(folder, f"{name}.py")
        path.write_text(BLOCKS[path.name])
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    yield modules
    for name in modules:
        del sys.modules[name]


@pytest.fixture(scope="module")
def case(package: dict[str, ModuleType]) -> Case:
    made: Case = package["test_loadgen_tgi"].case.__wrapped__()
    return made


class TestShown(EndpointOnPaper):
    """The API that the page shows."""


def test_the_package_names_its_object(package: dict[str, ModuleType]) -> None:
    named = tomllib.loads(BLOCKS["pyproject.toml"])["project"]["entry-points"][endpoints.GROUP]
    module, _, attribute = named["tgi"].partition(":")
    assert isinstance(getattr(package[module], attribute), endpoints.Api)


def test_the_pages_list_the_built_in_backends() -> None:
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("server.md", "embeddings.md"))
    listed = re.findall(r"^ *\| `([\w.-]+)` \| `([\w/]+)` \|", pages, re.MULTILINE)
    own = {
        name for name, backend in BACKENDS.items() if name == "openai" or backend is not COMPLETIONS
    }
    assert {name for name, _ in listed} == own
    assert all(endpoints.named(name).path == path for name, path in listed)

"""The version of a package is read from the name of its metadata folder."""

import importlib.metadata

import pytest

from loadgen.util.packages import package_version


@pytest.mark.parametrize("package", ["aiohttp", "uvloop", "orjson", "numpy", "tokenizers"])
def test_it_is_that_of_the_metadata(package: str) -> None:
    assert package_version(package) == importlib.metadata.version(package)


def test_a_package_that_is_not_installed_has_none() -> None:
    assert package_version("no-such-package") is None

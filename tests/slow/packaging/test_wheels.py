"""The names of the wheels that `make release-wheels` makes; tests/qa/release tries the wheels."""

import tomllib

from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename

from deploy.wheels import DIST, OLDEST, OTHERS, VERSIONS, WHEELS, Wheel
from tests.helpers.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_wheels_are_made_for_the_versions_that_the_package_says_it_runs_on() -> None:
    assert {wheel.python for wheel in WHEELS} == {*VERSIONS, None}
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={OLDEST}")


def test_every_platform_has_a_wheel_of_the_limited_api() -> None:
    assert {wheel.platform for wheel in WHEELS if wheel.python is None} == {
        wheel.platform for wheel in WHEELS
    }


def test_each_name_is_one_wheel() -> None:
    assert len({wheel.name for wheel in WHEELS}) == len(WHEELS)


def test_tags_are_those_of_an_index() -> None:
    def tags(wheel: Wheel) -> set[str]:
        platforms = ".".join(tag.rpartition("-")[2] for tag in wheel.tags)
        name = f"loadgen-0.1.0-{wheel.tags[0].rpartition('-')[0]}-{platforms}.whl"
        return {str(tag) for tag in parse_wheel_filename(name)[3]}

    for wheel in WHEELS:
        assert tags(wheel) == set(wheel.tags)
    assert [wheel.name for wheel in WHEELS if wheel.python in (None, OLDEST)] == [
        "cp311-manylinux_2_17_x86_64",
        "cp311-manylinux_2_17_aarch64",
        "abi3-manylinux_2_17_x86_64",
        "abi3-manylinux_2_17_aarch64",
        "abi3-musllinux_1_2_x86_64",
        "abi3-musllinux_1_2_aarch64",
        "abi3-macosx_11_0_arm64",
    ]


def test_wheels_of_other_projects_are_not_among_those_that_are_uploaded() -> None:
    assert {wheel.folder for wheel in WHEELS} == {DIST}
    assert DIST not in {wheel.folder for wheel in OTHERS}
    assert "twine upload dist/*.whl dist/*.tar.gz`" in (ROOT / "deploy/README.md").read_text()

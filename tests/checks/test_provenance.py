"""Provenance checks note what is unknown but needed to repeat the run."""

import pytest
from msgspec import structs

from loadgen.checks import examine, provenance
from loadgen.config.settings import RunSettings
from tests.helpers.run_facts import run_data, steady


def of(made):
    (check,) = provenance(made)
    assert check.name == "provenance incomplete"
    return check


STRICT = RunSettings(strict=True)


def without(part, name=None, **options):
    """The check of a run of which a part of the provenance is not known."""
    made = run_data([steady()], **options)
    known = dict(made.header.provenance)
    if name is None:
        del known[part]
    else:
        known[part] = known[part] | {name: None}
    return of(structs.replace(made, header=structs.replace(made.header, provenance=known)))


def test_a_run_that_says_everything_is_green():
    check = of(run_data([steady()]))
    assert (check.ok, check.value) == (True, "0 unknown")


@pytest.mark.parametrize(
    ("part", "name", "said"),
    [
        ("settings", None, "settings"),
        ("machine", None, "machine"),
        ("seeds", "order", "seeds order"),
        ("schedule", "sha256", "schedule sha256"),
        ("prompts", "sha256", "prompts sha256"),
        ("versions", "loadgen", "versions loadgen"),
        ("machine", "clock_source", "machine clock_source"),
        ("engine", "version", "engine version"),
    ],
)
def test_missing_provenance_is_named(part, name, said):
    check = without(part, name, settings=STRICT)
    assert (check.ok, check.value) == (False, f"{said.count(',') + 1} unknown: {said}")


def test_the_user_may_say_the_engines_version():
    said, other = (STRICT.replace(metadata=(pair,)) for pair in ("engine_version=b1234", "arm=a"))
    assert of(run_data([steady()], said, engine={"name": "other"})).ok
    assert of(run_data([steady()], other, engine={"name": "other"})).ok is False


def test_engine_without_version_passes_unless_the_run_counts():
    assert of(run_data([steady()], engine={"name": "other"})).ok


def test_the_simulator_is_of_loadgens_own_version():
    assert without("engine", "version", simulated=True).ok


@pytest.mark.parametrize(
    "settings", [RunSettings(), RunSettings(strict=True), RunSettings(slo="ttft_p50<1s")]
)
def test_provenance_is_a_note_since_it_moves_no_figure(settings):
    assert not of(run_data([steady()], settings)).counts


def test_check_groups_are_in_order_and_check_names_are_unique():
    checks = examine(run_data([steady()]))
    assert sorted({check.group for check in checks}) == list("ABCDEFG")
    assert [check.group for check in checks] == sorted(check.group for check in checks)
    assert len({check.name for check in checks}) == len(checks)
    named = {check.name: check.group for check in checks}
    assert (
        named["another schedule"],
        named["requests sent late"],
        named["loop busy"],
        named["requests given up"],
    ) == tuple("ABCD")
    assert (
        named["prompts repeated"],
        named["sums disagree"],
        named["provenance incomplete"],
    ) == tuple("EFG")

"""Provenance: a note where something is unknown that one needs to make the run again."""

import dataclasses

import pytest

from loadgen.checks import examine, provenance
from loadgen.config.settings import RunSettings
from tests.helpers.run_facts import run_data, steady


def of(made):
    (check,) = provenance(made)
    assert check.name == "provenance complete"
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
    return of(dataclasses.replace(made, header=dataclasses.replace(made.header, provenance=known)))


def test_a_run_that_says_everything_is_green():
    check = of(run_data([steady()]))
    assert (check.ok, check.value) == (True, "complete")


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
def test_what_is_missing_is_named(part, name, said):
    check = without(part, name, settings=STRICT)
    assert (check.ok, check.value) == (False, f"unknown: {said}")


def test_the_user_may_say_the_engines_version():
    said, other = (STRICT.replace(metadata=(pair,)) for pair in ("engine_version=b1234", "arm=a"))
    assert of(run_data([steady()], said, engine={"name": "other"})).ok
    assert of(run_data([steady()], other, engine={"name": "other"})).ok is False


def test_where_nothing_rests_on_the_run_an_engine_that_tells_no_version_is_not_remarked_on():
    assert of(run_data([steady()], engine={"name": "other"})).ok


def test_the_simulator_is_of_loadgens_own_version():
    assert without("engine", "version", simulated=True).ok


@pytest.mark.parametrize(
    ("settings", "counts"),
    [(RunSettings(), False), (RunSettings(strict=True), True), (RunSettings(slo="ttft_p50<1s"), True)],
)
def test_it_is_a_note_unless_something_rests_on_it(settings, counts):
    assert of(run_data([steady()], settings)).counts is counts


def test_all_groups_are_examined_in_their_order_each_check_under_a_name_of_its_own():
    checks = examine(run_data([steady()]))
    assert sorted({check.group for check in checks}) == list("ABCDEFG")
    assert [check.group for check in checks] == sorted(check.group for check in checks)
    assert len({check.name for check in checks}) == len(checks)
    named = {check.name: check.group for check in checks}
    assert (named["one schedule"], named["lag p99"], named["loop busy"], named["none given up"]) == tuple("ABCD")
    assert (named["prompts distinct"], named["sums agree"], named["provenance complete"]) == tuple("EFG")

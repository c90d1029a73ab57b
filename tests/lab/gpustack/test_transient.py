"""Warm-up and cool-down: which requests of a run count, as guidellm's values say."""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.gpustack.transient import Transient, Transients
from tests.helpers.run_facts import steady, unsent


def counted(count: int, phases: Transients, **settings: Any) -> list[int]:
    """The numbers of the requests that count, of requests sent a second apart."""
    records = [steady(i, due=1000 * i) for i in range(count)]
    return [record.index for record in phases.counted(records, RunSettings(**settings))]


@pytest.mark.parametrize(
    ("value", "left_out"),
    [
        (0.2, 2),
        (3, 3),
        ({"percent": 0.25, "mode": "requests"}, 2),
        ({"value": 4, "mode": "requests"}, 4),
        ({"percent": 0.2}, 2),
        (0, 0),
    ],
)
def test_first_requests_are_left_out(value: Any, left_out: int) -> None:
    phases = Transients(warmup=Transient.parse("--warmup", value))
    assert counted(10, phases, num_prompts=10) == [*range(left_out, 10)]


def test_last_requests_are_left_out() -> None:
    phases = Transients(
        cooldown=Transient.parse("--cooldown", {"percent": 0.3, "mode": "requests"})
    )
    assert counted(10, phases, num_prompts=10) == [*range(7)]


@pytest.mark.parametrize(
    ("mode", "expected"), [("duration", 2), ("prefer_duration", 2), ("requests", 5)]
)
def test_mode_says_whether_seconds_or_requests_are_left_out(mode: str, expected: int) -> None:
    phases = Transients(
        warmup=Transient.parse("--warmup", {"value": 5 if mode == "requests" else 2, "mode": mode})
    )
    assert counted(10, phases, num_prompts=10, duration=10.0)[0] == expected


def test_bare_number_is_seconds_where_a_run_has_them_as_in_guidellm() -> None:
    phases = Transients(cooldown=Transient.parse("--cooldown", 0.2))
    assert counted(10, phases, num_prompts=10, duration=20.0) == [*range(6)]


def test_request_that_was_never_sent_is_not_one_of_the_first() -> None:
    records = [unsent(0), steady(1, due=10), steady(2, due=20)]
    found = Transients(warmup=Transient(1)).counted(records, RunSettings(num_prompts=3))
    assert [record.index for record in found] == [0, 2]


@pytest.mark.parametrize(("warmup", "cooldown"), [(0.5, 0.5), (10, 0), (4, 6)])
def test_phases_that_leave_nothing_are_refused(warmup: float, cooldown: float) -> None:
    phases = Transients(Transient(warmup, "requests"), Transient(cooldown, "requests"))
    with pytest.raises(BadInput, match="no request of the 10 requests of a run would count"):
        phases.check(RunSettings(num_prompts=10))


def test_phase_of_requests_needs_their_number() -> None:
    with pytest.raises(BadInput, match="--warmup: counts requests"):
        Transients(Transient(3, "requests")).check(RunSettings(duration=10.0, request_rate=1.0))

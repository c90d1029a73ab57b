"""Selections of events cover every set of flags that an event may have."""

from loadgen.core.event_flags import NAMES
from loadgen.lab.tools.emulate.recorded_run import event_selection


def test_every_set_of_flags_has_a_place() -> None:
    assert len(event_selection(lambda flags: flags >= 0)) > sum(NAMES.values())

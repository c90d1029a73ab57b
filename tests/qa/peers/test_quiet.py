"""Which runs count: those with little other processor use, or all where there are none."""

from bench.peers.made_up import trial
from bench.peers.quiet import DISTURBED_S, all_disturbed, median, quiet


def test_a_disturbed_run_is_no_part_of_the_median() -> None:
    runs = [
        trial(cpu_s=1.0),
        trial(cpu_s=9.0, others_s=DISTURBED_S + 0.1),
        trial(cpu_s=3.0, others_s=DISTURBED_S),
    ]
    assert quiet(runs) == [runs[0], runs[2]]
    assert median(runs, lambda run: run.cost.cpu_s) == 2.0
    assert not all_disturbed(runs)


def test_where_all_were_disturbed_all_count_and_that_is_known() -> None:
    runs = [trial(cpu_s=1.0, others_s=9.0), trial(cpu_s=2.0, others_s=9.0)]
    assert median(runs, lambda run: run.cost.cpu_s) == 1.5
    assert all_disturbed(runs)


def test_value_reported_by_no_run_has_no_median() -> None:
    assert median([trial()], lambda run: run.reported.measuring_mb) is None
    assert median([], lambda run: 1.0) is None
    assert not all_disturbed([])

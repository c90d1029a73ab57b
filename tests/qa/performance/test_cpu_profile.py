"""Samples of perf are added up by process and by whose code it was."""

from bench.performance.cpu_profile import SAMPLE_US, parsed, report
from bench.performance.load import Load

SAMPLES = """\
         python3     7fab775030af (/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)
  loadgen-worker ffffffff815d30be ([kernel.kallsyms])
  loadgen-worker     7fab774fcd13 (/home/u/loadgen/core/sse.cpython-311-x86_64-linux-gnu.so)
  loadgen-worker     7fab774fcd14 (/usr/lib/libpython3.11.so.1.0)
  loadgen-worker     7fab774fcd15 (/usr/lib/libpython3.11.so.1.0)
  loadgen-worker     7fab774fcd16 (/v/site-packages/uvloop/loop.cpython-311-x86_64-linux-gnu.so)
"""


def test_samples_are_added_up_by_process_and_part() -> None:
    assert dict(parsed(SAMPLES)) == {
        ("loadgen", "libraries"): SAMPLE_US,
        ("loadgen-worker", "kernel"): SAMPLE_US,
        ("loadgen-worker", "compiled core"): SAMPLE_US,
        ("loadgen-worker", "Python"): 2 * SAMPLE_US,
        ("loadgen-worker", "uvloop"): SAMPLE_US,
    }


def test_a_row_ends_with_the_sum_of_its_medians() -> None:
    costs = {
        ("loadgen-worker", "Python"): [30.0, 50.0, 40.0],
        ("loadgen-worker", "kernel"): [20.0, 21.0, 25.0],
    }
    (row,) = (
        line
        for line in report(costs, Load("W2", 500, 100, 2), 3).splitlines()
        if "measures" in line
    )
    assert row.endswith("| 21.0 | 0.000 | 40.0 | 0.000 | 0.000 | 61.0 |")

"""Probes in the result and in the block, as `vllm bench serve` has them."""

from loadgen.report.result import RunResult
from loadgen.report.vllm_block import block
from tests.helpers.run_facts import MS, result, steady

PROBES = {"probe_e2el_ns": (10 * MS, 20 * MS, 30 * MS), "probes_failed": 1}
# The rows that vLLM 0.33 prints of such probes.
ROWS = """------------------Probe Requests------------------
Probe requests completed:                3
Probe requests failed:                   1
Median probe E2EL (ms):                  20.00
P99 probe E2EL (ms):                     29.80
Max probe E2EL (ms):                     30.00"""


def test_the_block_has_vllms_rows() -> None:
    lines = [line.rstrip() for line in block(result([steady()], facts=PROBES), [], [])]
    start = next(number for number, line in enumerate(lines) if "Probe Requests" in line)
    assert "\n".join(lines[start:-1]) == ROWS


def test_the_result_has_vllms_keys_and_is_read_back() -> None:
    data = result([steady()], facts=PROBES)
    keys = [
        data[f"probe_{name}"] for name in ("completed", "failed", "median_e2el_ms", "max_e2el_ms")
    ]
    assert keys == [3, 1, 20.0, 30.0]
    assert RunResult.from_dict(data).to_dict() == data


def test_a_run_without_probes_has_no_keys_of_them() -> None:
    assert not [key for key in result([steady()], facts={}) if key.startswith("probe_")]


def test_probes_of_which_all_failed_are_counted() -> None:
    data = result([steady()], facts={"probes_failed": 2})
    assert (data["probe_completed"], data["probe_failed"], data["probe_median_e2el_ms"]) == (
        0,
        2,
        None,
    )
    rows = block(data, [], [])
    assert any(line.split() == ["Probe", "requests", "failed:", "2"] for line in rows)
    assert not any("probe E2EL" in line for line in rows)

"""Speculative decoding in the result and in the block, as `vllm bench serve` has it."""

from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.result import RunResult
from loadgen.report.tool_block import vllm_block
from tests.helpers.run_facts import result, steady
from tests.helpers.server_scrapes import telemetry

COUNTS = {
    "drafts": 100,
    "drafted_tokens": 300,
    "accepted_tokens": 150,
    "accepted_at_0": 80,
    "accepted_at_1": 70,
}
SAID = telemetry(dict.fromkeys(COUNTS, 0), COUNTS)
# The rows that vLLM 0.33 prints of such a run.
ROWS = """---------------Speculative Decoding---------------
Acceptance rate (%):                     50.00
Acceptance length:                       2.50
Drafts:                                  100
Draft tokens:                            300
Accepted tokens:                         150
Per-position acceptance (%):
  Position 0:                            80.00
  Position 1:                            70.00"""


def rows(said: Telemetry) -> str:
    lines = list(vllm_block(result([steady()], telemetry=said), [], []))
    start = next(
        (number for number, line in enumerate(lines) if "Speculative" in line), len(lines) - 1
    )
    return "\n".join(line.rstrip() for line in lines[start:-1])


def test_the_block_has_vllms_rows() -> None:
    assert rows(SAID) == ROWS


def test_the_result_has_vllms_keys_and_is_read_back() -> None:
    data = result([steady()], telemetry=SAID)
    keys = {
        name.removeprefix("spec_decode_"): data[name]
        for name in data
        if name.startswith("spec_decode_")
    }
    assert keys == {
        "acceptance_rate": 50.0,
        "acceptance_length": 2.5,
        "num_drafts": 100,
        "draft_tokens": 300,
        "accepted_tokens": 150,
        "per_position_acceptance_rates": [0.8, 0.7],
    }
    assert RunResult.from_dict(data).to_dict() == data


def test_gauges_alone_give_rate_and_length() -> None:
    shown = rows(
        telemetry(
            {"running": 0}, {"running": 0}, {"batch_acceptance": 0.6, "batch_accept_length": 2.75}
        )
    )
    assert [line.split()[-1] for line in shown.splitlines()[1:]] == ["60.00", "2.75"]


def test_a_run_without_drafts_has_neither_keys_nor_rows() -> None:
    assert rows(Telemetry()) == ""
    assert not [key for key in result([steady()]) if key.startswith("spec_decode_")]

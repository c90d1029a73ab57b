"""Probes beside the load, and in the result and the block as `vllm bench serve` has them."""

import asyncio
from types import SimpleNamespace
from typing import Any

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.features.probe import FIRST, Probe
from loadgen.report.result import RunResult
from loadgen.report.tool_block import vllm_block
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
    lines = [line.rstrip() for line in vllm_block(result([steady()], facts=PROBES), [], [])]
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
    rows = vllm_block(data, [], [])
    assert any(line.split() == ["Probe", "requests", "failed:", "2"] for line in rows)
    assert not any("probe E2EL" in line for line in rows)


class Silent:
    """A transport whose requests end when a test says so."""

    def __init__(self) -> None:
        self.target = SimpleNamespace(body=lambda prompt: b"{}")
        self.sent: list[Record] = []
        self.on_end: Any = None

    def send(self, record: Record, body: bytes) -> None:
        self.sent.append(record)

    def end(self, outcome: Outcome) -> None:
        """End the last request 5 ns after it was sent."""
        record = self.sent[-1]
        record.outcome, record.sent, record.last_token = outcome, 100, 105
        self.on_end(record)


async def test_probes_are_sent_one_after_another_and_the_last_is_waited_for() -> None:
    transport = Silent()
    probe = Probe(transport, rate=1e9)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(probe.run())
        for outcome in (Outcome.OK, Outcome.STATUS, Outcome.CANCELLED):
            count = len(transport.sent)
            while len(transport.sent) == count:
                await asyncio.sleep(0)
            if outcome is Outcome.CANCELLED:
                finished = tasks.create_task(probe.finish())
                await asyncio.sleep(0)
                assert not finished.done()
            transport.end(outcome)
    assert [record.index for record in transport.sent] == [FIRST, FIRST - 1, FIRST - 2]
    assert finished.result() == {"probe_e2el_ns": [5], "probes_failed": 1}


async def test_a_probe_that_has_not_begun_sends_nothing_once_it_is_to_finish() -> None:
    transport = Silent()
    probe = Probe(transport, rate=1.0)  # type: ignore[arg-type]
    assert await probe.finish() == {"probe_e2el_ns": [], "probes_failed": 0}
    await probe.run()
    assert transport.sent == []

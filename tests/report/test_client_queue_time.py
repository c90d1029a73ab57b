"""vLLM's client_queue_time and e2el_including_client_queue: the wait for a slot, and E2EL with
it.
"""

from loadgen.config.settings import RunSettings
from loadgen.report.result import RunResult
from loadgen.report.tool_block import vllm_block
from tests.helpers.run_facts import result, steady

ASKED = "client_queue_time,e2el_including_client_queue"


def flat(**options):
    return result(
        [steady(index) for index in range(20)], RunSettings(percentile_metrics=ASKED, **options)
    )


def queue_keys(data):
    return {name: value for name, value in data.items() if "client_queue" in name}


def test_they_are_the_wait_for_a_slot_and_e2el_from_due():
    data = flat(max_concurrency=4, request_rate=10.0)
    found, latency = queue_keys(data), data["loadgen"]["latency_ms"]
    assert len(found) == 8
    assert found["p99_client_queue_time_ms"] == latency["pool_wait"]["p99"]
    assert found["mean_e2el_including_client_queue_ms"] == latency["e2el_due"]["mean"]
    lines = list(vllm_block(data, ASKED.split(","), [99.0]))
    assert "---------------Client-side Queueing---------------" in lines
    assert any(line.startswith("P99 E2EL incl. Client Queue (ms):") for line in lines)


def test_without_a_cap_there_is_no_queue():
    assert queue_keys(flat(request_rate=10.0)) == {}
    assert not any("Queue" in line for line in vllm_block(flat(), ASKED.split(","), [99.0]))


def test_in_a_closed_loop_a_request_is_due_when_a_slot_is_free():
    assert set(queue_keys(flat(max_concurrency=4)).values()) == {None}


def test_they_survive_a_file():
    data = flat(max_concurrency=4, request_rate=10.0)
    assert queue_keys(RunResult.from_dict(data).to_dict()) == queue_keys(data)

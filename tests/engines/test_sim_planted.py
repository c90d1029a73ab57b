"""The simulator's planted faults of time, and the times that it says of an answer."""

import asyncio
from typing import cast

import orjson
import pytest

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.api_format import COMPLETION, CompletionWriter, Usage
from loadgen.engines.sim.completion_request import parse_request
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.planted import FreezableTransport, PlantedFaults
from loadgen.engines.sim.scheduler import Scheduler, Sequence
from loadgen.engines.sim.settings import Faults, SimSettings
from tests.helpers.sim_steps import MS, steps

SETTINGS = SimSettings(
    step_base_ms=10.0,
    prefill_us_per_token=0.0,
    decode_us_per_seq=0.0,
    max_num_seqs=1,
    enable_per_request_metrics=True,
)


class Written:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.closed = True


def test_sequence_knows_when_it_was_scheduled_and_got_its_tokens() -> None:
    first, second = Sequence(4, 3), Sequence(4, 2)
    for _ in steps(Scheduler(SETTINGS.limits, SETTINGS.costs), [first, second]):
        pass
    assert (first.scheduled_ns, first.first_ns, first.last_ns) == (0, 10 * MS, 30 * MS)
    assert (second.scheduled_ns, second.first_ns, second.last_ns) == (30 * MS, 40 * MS, 50 * MS)


def test_finished_answer_says_its_times_as_vllm_does() -> None:
    request = parse_request({"prompt": "a", "max_tokens": 3}, COMPLETION, SETTINGS, seed=1)
    answer = Answer(ServerConnection(), request)
    answer.ready_ns, answer.scheduled_ns, answer.first_ns = 5 * MS, 12 * MS, 22 * MS
    assert answer.usage.metrics is None, "it has not ended"
    answer.last_ns, answer.generated = 42 * MS, 3
    assert answer.usage.metrics == {
        "time_to_first_token_ms": 10.0,  # vLLM's name of the time of the prefill
        "generation_time_ms": 20.0,
        "queue_time_ms": 7.0,
        "mean_itl_ms": 10.0,
        "tokens_per_second": 100.0,
    }
    writer = CompletionWriter("1", 0, '"sim"', "length")
    event = orjson.loads(writer.usage(answer.usage).removeprefix(b"data: "))
    assert event["metrics"] == answer.usage.metrics
    assert event["usage"]["completion_tokens"] == 3
    assert b"metrics" not in writer.usage(Usage(1, 3))


async def test_engine_pauses_in_the_first_step_of_each_period_but_the_first() -> None:
    faults = Faults(pause_every_s=1.0, pause_ms=50.0)
    planted = PlantedFaults(faults, 0.0, asyncio.get_running_loop(), seed=0)
    begins_ms = (10, 500, 1010, 1020, 2009, 2010)
    pauses = [planted.pause_ns(at_ms * MS) // MS for at_ms in begins_ms]
    assert pauses == [0, 0, 50, 0, 0, 50]


async def test_frozen_transport_holds_back_and_then_sends_all_in_order() -> None:
    written = Written()
    transport = FreezableTransport(cast(asyncio.Transport, written), asyncio.get_running_loop())
    transport.write(b"a")
    transport.freeze(0.01)
    assert transport.get_write_buffer_size() > 0, "so that nothing is written past it"
    transport.write(b"b")
    transport.write(b"c")
    transport.close()
    assert (written.data, written.closed) == (b"a", False)
    while not written.closed:
        await asyncio.sleep(0.005)
    assert written.data == b"abc"
    assert transport.get_write_buffer_size() == 0


@pytest.mark.parametrize("every_s", [0.0, 1.0])
async def test_freezes_one_stream_a_period(every_s: float) -> None:
    class FrozenStream:
        diverted = 0

        def divert(self) -> None:
            self.diverted += 1

    request = parse_request({"prompt": "a"}, COMPLETION, SETTINGS, seed=1)
    answers = [Answer(ServerConnection(), request) for _ in range(3)]
    loop = asyncio.get_running_loop()
    streams = [FrozenStream() for _ in answers]
    for answer, stream in zip(answers, streams, strict=True):
        answer.stream = stream  # type: ignore[assignment]
        written = cast(asyncio.Transport, Written())
        answer.client.transport = cast(asyncio.Transport, FreezableTransport(written, loop))
    planted = PlantedFaults(Faults(freeze_every_s=every_s), 0.0, loop, seed=0)
    for at_ms in (10, 500, 1010, 1500, 2010):
        planted.freeze(at_ms * MS, answers)
    assert sum(stream.diverted for stream in streams) == (2 if every_s else 0)

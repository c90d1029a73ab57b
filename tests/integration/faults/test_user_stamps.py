"""User stamps: where the kernel gives none, a token's time is when it was read, and a result
says so.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loadgen
from loadgen import report
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.run import run
from loadgen.testing.faulty import Faulty
from loadgen.testing.process import Process
from loadgen.testing.replies import HEAD
from loadgen.testing.truth import Truth
from loadgen.util.clock import now_ns
from loadgen.util.tasks import background_tasks
from tests.helpers.command_line import TOKENIZER
from tests.helpers.fault_requests import TOKENS, Sender
from tests.helpers.timed_server import TimedServer, timed_server

# A token that follows a send after a stall comes inside a stall.
GAP_S, STALL_S, BETWEEN_S = (0.05, 0.025, 0.01)
REQUESTS, LENGTH = 40, 6
FLOOR_NS = 50_000  # between the clock that the server reads and the kernel's stamp
MAX_LATE_NS = 20_000_000  # of a stamp, where all processors are busy
HOUR_NS = 3600 * 10**9
ENCODED = HEAD + b"Content-Encoding: %b\r\n%b\r\n"


@contextlib.contextmanager
def stalls() -> Iterator[None]:
    """Stop the running loop for STALL_S again and again."""
    handles: list[asyncio.TimerHandle] = []

    def stall() -> None:
        time.sleep(STALL_S)
        begin()

    def begin() -> None:
        handles[:] = [asyncio.get_running_loop().call_later(BETWEEN_S, stall)]

    begin()
    try:
        yield
    finally:
        handles[0].cancel()


async def measured(url: str, path: Path, **settings: Any) -> tuple[loadgen.Result, list[Record]]:
    """Measure in this loop, which is stopped again and again."""
    asked = loadgen.RunSettings(
        base_url=url,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        random_input_len=16,
        random_output_len=LENGTH,
        request_rate=100.0,
        num_prompts=REQUESTS,
        records=str(path),
    )
    with stalls():
        result = await loadgen.run(asked.replace(**settings))
    records = list(RecordFile(path))
    assert [record.outcome for record in records] == [Outcome.OK] * REQUESTS
    return result, records


def check(result: loadgen.Result, name: str) -> dict[str, Any]:
    """A check of a result, by its name."""
    (found,) = [one for one in result.data["loadgen"]["checks"] if one["name"] == name]
    return dict(found)


def error_ms(result: loadgen.Result) -> float:
    """The client error of the mean TTFT."""
    assert result.client_error_ms is not None
    found = result.client_error_ms.ttft_sent["mean"]
    assert found is not None
    return found


def assert_user_stamped(result: loadgen.Result, server: TimedServer, records: list[Record]) -> None:
    """All tokens have the time at which they were read, and the result says what that means."""
    assert result.tokens.user_stamped_events == result.tokens.token_events == REQUESTS * LENGTH
    tokens = server.compared(records)
    assert np.array_equal(tokens.arrival, tokens.read)
    assert np.all(tokens.write <= tokens.arrival)
    assert np.all(tokens.earliest <= tokens.arrival)
    client = check(result, "timing error too large")
    assert client["ok"] is False
    assert "(100.0%) have no stamp of the kernel's" in client["advice"]
    assert result.verdict is loadgen.Verdict.SUSPECT
    assert error_ms(result) > 0.5 * STALL_S * 1e3


def test_socket_without_stamps_widens_the_client_error(tmp_path: Path) -> None:
    """The kernel stamps nothing of a Unix socket."""
    path = tmp_path / "socket"
    with timed_server(GAP_S, path=path) as server:
        by_kernel, _ = asyncio.run(measured(server.url, tmp_path / "tcp"))
        by_user, records = asyncio.run(
            measured(server.url, tmp_path / "unix", unix_socket=str(path))
        )
        assert_user_stamped(by_user, server, records)
    assert by_kernel.tokens.user_stamped_events == 0
    assert error_ms(by_kernel) < 0.2 * error_ms(by_user)
    text = " ".join(report.render(by_user).split())
    assert f"UNIX SOCKET: requests went over the Unix socket {path}; times are" in text


@pytest.mark.parametrize(
    "fault", ["length", "until-close", "cut-chunking", "one-segment", "byte-by-byte"]
)
async def test_each_framing_of_a_plain_answer_has_kernel_stamps(faulty: Faulty, fault: str) -> None:
    async with Sender(faulty.url) as sender:
        record = await sender.one(fault)
        assert (record.outcome, record.events) == (Outcome.OK, TOKENS)
        assert record.user_stamped == 0


def test_step_of_the_wall_clock_costs_the_stamps_around_it(
    metronome: Process, tmp_path: Path
) -> None:
    """The clock is set once a tenth of a second: each time the run sees a step there, and one
    back at the next look.
    """
    runner, gap_ms = LoopRunner(), 5.0

    async def set_clock() -> None:
        while True:
            await asyncio.sleep(0.1)
            if runner.opened is not None and runner.progress().phase == "running":
                before_ns = now_ns()
                runner.opened.read_loop.kernel_clock.observe(
                    before_ns, time.time_ns() + HOUR_NS, before_ns + 1
                )

    async def measure() -> loadgen.Result:
        settings = loadgen.RunSettings(
            base_url=metronome.url,
            preflight=False,
            backend="openai-chat",
            tokenizer=TOKENIZER,
            random_input_len=16,
            random_output_len=20,
            request_rate=100.0,
            num_prompts=100,
            extra_body={"metronome": {"first_ms": gap_ms, "gap_ms": gap_ms}},
            records=str(tmp_path / "records"),
        )
        async with runner, background_tasks(set_clock()):
            return await run(settings, participant=runner)

    Truth.forget(metronome.url)
    result = asyncio.run(measure())
    truth = Truth.fetch(metronome.url)
    assert runner.opened is not None
    assert runner.opened.read_loop.kernel_clock.steps >= 2
    assert 0 < result.tokens.user_stamped_events < 0.2 * result.tokens.token_events
    places = {number: place for place, number in enumerate(truth.number.tolist())}
    late_ns: list[int] = []
    for record in RecordFile(tmp_path / "records"):
        of = slice(truth.starts[places[record.index]], truth.starts[places[record.index] + 1])
        by_kernel = np.array(record.stamps) < record.read_times
        assert record.user_stamped >= np.count_nonzero(~by_kernel)
        assert record.ordered
        assert np.all(truth.write_ns[of] <= record.stamps)
        earliest_ns = np.array(record.earliest or record.stamps)[by_kernel]
        late_ns.extend(earliest_ns - truth.written_ns[of][by_kernel])
    # The kernel stamps a segment late where all processors are busy; a step would be an hour.
    assert max(late_ns) <= MAX_LATE_NS
    assert np.count_nonzero(np.array(late_ns) > FLOOR_NS) <= 0.005 * len(late_ns)

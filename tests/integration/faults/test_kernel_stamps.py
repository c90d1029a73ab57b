"""Kernel stamps: a token's time is when its bytes arrived, however late the client reads, and
the interval holds it.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import loadgen
from loadgen.core.outcome import Outcome
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.process import Process
from loadgen.testing.truth import Int64s, Truth
from tests.helpers.command_line import TOKENIZER

TOKENS = 20  # of an answer
STALL_S = 0.03
FLOOR_NS = 50_000  # between the clock that the server reads and the kernel's stamp


@dataclass(frozen=True)
class Tokens:
    """The tokens of a run, one entry each, CLOCK_MONOTONIC ns."""

    write: Int64s  # before the server wrote it,
    written: Int64s  # and after
    earliest: Int64s
    arrival: Int64s
    read: Int64s

    @property
    def exact(self) -> np.ndarray:
        return self.earliest == self.arrival


async def measured(
    server: Process, folder: Path, gap_ms: float = 5.0
) -> tuple[loadgen.Result, Tokens]:
    """Measure 40 answers of 20 tokens in this loop, and look up when the server wrote each
    token.
    """
    Truth.forget(server.url)
    path = folder / "records"
    settings = loadgen.RunSettings(
        base_url=server.url,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        random_input_len=16,
        random_output_len=TOKENS,
        request_rate=100.0,
        num_prompts=40,
        extra_body={"metronome": {"first_ms": gap_ms, "gap_ms": gap_ms}},
        records=str(path),
    )
    result = await loadgen.run(settings)
    truth = Truth.fetch(server.url)
    numbers = {number: place for place, number in enumerate(truth.number.tolist())}
    columns: list[tuple[Int64s, ...]] = []
    for record in RecordFile(path):
        assert record.outcome is Outcome.OK
        place = numbers[record.index]
        of = slice(truth.starts[place], truth.starts[place + 1])
        stamps = np.array(record.stamps)
        earliest = stamps if record.earliest is None else np.array(record.earliest)
        columns.append(
            (
                truth.write_ns[of],
                truth.written_ns[of],
                earliest,
                stamps,
                np.array(record.read_times),
            )
        )
    return result, Tokens(*map(np.concatenate, zip(*columns, strict=True)))


@pytest.fixture
def stalls() -> Iterator[list[asyncio.Handle]]:
    """Stops the running loop for STALL_S again and again, once it is filled."""
    handles: list[asyncio.Handle] = []
    yield handles
    for handle in handles:
        handle.cancel()


def stall(handles: list[asyncio.Handle]) -> None:
    time.sleep(STALL_S)
    handles[:] = [asyncio.get_running_loop().call_later(0.01, stall, handles)]


def test_kernel_stamps_every_token_and_every_send(metronome: Process, tmp_path: Path) -> None:
    result, tokens = asyncio.run(measured(metronome, tmp_path))
    assert result.tokens.user_stamped_events == 0
    assert np.all(tokens.write <= tokens.arrival)
    assert np.all(tokens.arrival <= tokens.read)
    assert np.all(tokens.earliest[tokens.exact] == tokens.arrival[tokens.exact])
    assert all(record.written == record.sent for record in RecordFile(tmp_path / "records"))


def test_interval_holds_the_truth_while_the_client_stalls(
    metronome: Process, tmp_path: Path, stalls: list[asyncio.Handle]
) -> None:
    async def beside_stalls() -> tuple[loadgen.Result, Tokens]:
        stall(stalls)
        return await measured(metronome, tmp_path)

    _, tokens = asyncio.run(beside_stalls())
    assert np.all(tokens.write <= tokens.arrival)
    assert np.all(tokens.earliest <= tokens.written + FLOOR_NS)
    # In a stall of 30 ms six tokens of a stream arrive, in segments of their own: only the last
    # stamp of a read is known. Events without a token follow the last one of an answer.
    ends_read = np.append(tokens.read[1:] != tokens.read[:-1], False)
    ends_read[TOKENS - 1 :: TOKENS] = False
    assert np.all(tokens.exact[ends_read])
    assert np.mean(tokens.exact) < 0.9
    late_ns = tokens.read - tokens.arrival
    assert np.percentile(late_ns, 90) > 5e6
    # What the client's stalls do to reading, they do not do to the arrival of tokens whose stamp is
    # exact.
    assert np.percentile((tokens.arrival - tokens.write)[tokens.exact], 90) < np.percentile(
        late_ns, 90
    )


async def test_tokens_of_one_segment_arrived_together_and_exactly(roofline: Process) -> None:
    settings = loadgen.RunSettings(
        base_url=roofline.url,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        random_input_len=16,
        random_output_len=TOKENS,
        request_rate=100.0,
        num_prompts=20,
    )
    result = await loadgen.run(settings)
    assert result.tokens.token_events == 400
    assert result.tokens.token_reads == 20
    assert result.tokens.inexact_events == 0
    assert result.icl.max_ms == 0

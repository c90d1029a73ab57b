"""Error per token: the client's stamp beside the time in which the server wrote the token."""

import math
from collections.abc import Callable

import pytest

from bench.accuracy.conditions import Condition, alone, beside_a_hog
from bench.accuracy.judging import LOADED_P99_NS, P99_NS, TOKENS_BOUND, stamps
from bench.accuracy.measuring import compared
from loadgen.testing.process import Process

LIGHT = 20_000  # tokens/s

full = pytest.mark.accuracy


@pytest.mark.parametrize(
    ("rate", "requests", "tokens", "gap_ms", "beside"),
    [
        pytest.param(1, 10, 50, 20, alone, marks=full),
        pytest.param(10, 100, 50, 20, alone, marks=full),
        pytest.param(100, 100, 50, 20, alone),
        pytest.param(200, 2_000, 100, 10, alone, marks=full),
        pytest.param(200, 2_000, 100, 10, beside_a_hog, marks=full),
        pytest.param(300, 3_000, 50, 20, alone, marks=full),
        pytest.param(1_000, 10_000, 50, 20, alone, marks=full),
        pytest.param(1_000, 20_000, 50, 200, alone, marks=full),
    ],
)
async def test_token_is_stamped_when_it_arrives(
    metronome: Process,
    row: Callable[..., None],
    rate: int,
    requests: int,
    tokens: int,
    gap_ms: int,
    beside: Condition,
) -> None:
    streams = round(rate * tokens * gap_ms / 1e3)
    run = await compared(
        metronome,
        tokens=tokens,
        plan={"first_ms": gap_ms, "gap_ms": gap_ms},
        beside=beside,
        request_rate=rate,
        num_prompts=requests,
        warm_connections=str(math.ceil(1.05 * streams)),
    )
    assert len(run.stamps_ns) == requests * tokens
    p99_ns = P99_NS if rate * tokens <= LIGHT else LOADED_P99_NS
    found = stamps(run, p99_ns)
    hog = "" if beside is alone else ", beside one hog"
    told = f"{found.measured}; loop {run.client['busy_share']:.0%} busy"
    row(
        f"{rate:,} req/s of {tokens} tokens, {streams:,} at once{hog}",
        told,
        TOKENS_BOUND.format(p99_ns / 1e3),
        found.met,
    )

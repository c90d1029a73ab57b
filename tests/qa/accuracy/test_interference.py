"""Interference: a machine that others use, too: the printed figures are as near to the truth as
they claim.
"""

import asyncio
from collections.abc import Callable

import pytest

from bench.accuracy.conditions import Condition, alone, beside_hogs, limited, stopped
from bench.accuracy.judging import PLAN, judge
from bench.accuracy.measuring import Run, compared
from loadgen.testing.process import Process
from loadgen.util.tasks import background_tasks

CONDITIONS = {
    "a busy program on every core": beside_hogs,
    "limited to 10% of a processor": limited(0.1),
    "stopped for 50 ms again and again": stopped,
}

pytestmark = pytest.mark.accuracy


async def litter() -> None:
    """What a program may do that embeds loadgen: make many objects that refer to each other, and
    drop them.
    """
    kept: list[object] = []
    while True:
        for _ in range(20_000):
            pair: list[object] = []
            pair.append(pair)
            kept.append(pair)
        del kept[: len(kept) // 2]
        await asyncio.sleep(0.01)


async def ask(metronome: Process, beside: Condition, *, worker: bool = True) -> Run:
    return await compared(
        metronome,
        tokens=50,
        plan=PLAN,
        worker=worker,
        beside=beside,
        request_rate=200,
        duration=6.0,
    )


@pytest.mark.parametrize("load", CONDITIONS)
async def test_disturbed_client_is_as_exact_as_it_claims(
    metronome: Process, row: Callable[..., None], load: str
) -> None:
    judge(row, load, await ask(metronome, CONDITIONS[load]))


async def test_library_in_a_program_that_litters_is_as_exact_as_it_claims(
    metronome: Process, row: Callable[..., None]
) -> None:
    async with background_tasks(litter()):
        judge(
            row, "the library in a program that litters", await ask(metronome, alone, worker=False)
        )

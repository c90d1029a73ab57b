"""Soak: a million requests leave memory and files as they were."""

import asyncio
import contextlib
import os
from collections.abc import Callable

import numpy as np
import psutil
import pytest

import loadgen
from loadgen.beside import beside
from loadgen.measurer import Worker
from loadgen.testing.process import Process
from tests.accuracy.measuring import Short

REQUESTS = int(os.environ.get("LOADGEN_SOAK_REQUESTS", "1000000"))
RATE = 4_000
# A run keeps each request's number and when it was sent and closed, 8 bytes each, in arrays that grow by an eighth.
BYTES_PER_REQUEST = 48

pytestmark = pytest.mark.accuracy


class Size:
    """The measuring process's resident bytes and open files, every half second while requests are sent."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.resident: list[int] = []
        self.files: list[int] = []
        self._now = 0

    def on_progress(self, progress: loadgen.Progress) -> None:
        self._now = progress.ended if progress.phase == "running" else 0

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            with contextlib.suppress(psutil.NoSuchProcess):
                found = [c for c in psutil.Process().children() if "loadgen.worker" in c.cmdline()]
                if self._now and found:
                    self.ended.append(self._now)
                    self.resident.append(found[0].memory_info().rss)
                    self.files.append(found[0].num_fds())


async def test_nothing_grows(roofline: Process, row: Callable[..., None]) -> None:
    size = Size()
    settings = loadgen.RunSettings(
        base_url=roofline.url, backend="openai-chat", request_rate=RATE, num_prompts=REQUESTS
    )
    async with Worker() as worker, beside(size.watch()):
        result = await loadgen.run(settings, dataset=Short(4), measurer=worker, on_progress=size.on_progress)
    assert result.snapshot.ok == REQUESTS
    settled = len(size.ended) // 5
    per_request = np.polyfit(size.ended[settled:], size.resident[settled:], 1)[0]
    files = size.files[settled:]
    told = f"{per_request:.1f} bytes/request, {min(files)} to {max(files)} files"
    met = per_request <= BYTES_PER_REQUEST and max(files) - min(files) <= max(files) * 0.05
    row(f"{REQUESTS:,} requests at {RATE:,} req/s", told, f"<= {BYTES_PER_REQUEST} bytes/request, files flat", met)

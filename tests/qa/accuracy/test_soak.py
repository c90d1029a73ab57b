"""Soak: a million requests leave memory and files as they were."""

import os
from collections.abc import Callable

import numpy as np
import psutil
import pytest

import loadgen
from bench.accuracy.measuring import measured
from loadgen.testing.process import Process

REQUESTS = int(os.environ.get("LOADGEN_SOAK_REQUESTS", "1000000"))
RATE = 4_000
# A run keeps 28 bytes a request: its number, when it was sent and closed, its TTFT and E2EL.
BYTES_PER_REQUEST = 32

pytestmark = pytest.mark.accuracy


class Size:
    """The measuring process's resident bytes and open files, by how many requests have ended.

    Looked at each time it tells how far it is, but not near the end: by then it may have closed its
    connections.
    """

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.resident: list[int] = []
        self.files: list[int] = []

    def on_progress(self, progress: loadgen.Progress) -> None:
        if progress.phase == "running" and REQUESTS * 0.2 < progress.ended < REQUESTS * 0.95:
            (worker,) = (
                c
                for c in psutil.Process().children()
                if "loadgen.runner.worker_main" in c.cmdline()
            )
            self.ended.append(progress.ended)
            self.resident.append(worker.memory_info().rss)
            self.files.append(worker.num_fds())


async def test_memory_and_files_do_not_grow(roofline: Process, row: Callable[..., None]) -> None:
    size = Size()
    settings = loadgen.RunSettings(
        base_url=roofline.url, backend="openai-chat", request_rate=RATE, num_prompts=REQUESTS
    )
    result = await measured(roofline, settings, 4, on_progress=size.on_progress)
    assert result.snapshot.ok == REQUESTS
    per_request = np.polyfit(size.ended, size.resident, 1)[0]
    fewest, most = min(size.files), max(size.files)
    told = f"{per_request:.1f} bytes/request, {fewest} to {most} files"
    met = per_request <= BYTES_PER_REQUEST and most - fewest <= most * 0.05
    row(
        f"{REQUESTS:,} requests at {RATE:,} req/s",
        told,
        f"<= {BYTES_PER_REQUEST} bytes/request, files flat",
        met,
    )

"""Floors: clients that are no tools: a plain one in aiohttp, and a loop in C, both of the bench of
loadgen's own cost.

They make no prompts, keep no records and judge nothing; what they cost is what reading the streams
costs.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.engines.environments import Recipe
from bench.peers.peer import MODEL, Reported, Task
from bench.peers.tools import KNOWN, carried_out
from bench.performance.clients import Limit
from tests.helpers.source import ROOT


class _Floor:
    """What both have in common."""

    recipe: Recipe | None = None
    env: Mapping[str, str] = {"PYTHONPATH": str(ROOT)}
    poisson = False

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        found = json.loads(said)
        return Reported(
            found["tokens"], {"ttft": {50: found["ttft_p50_ms"], 99: found["ttft_p99_ms"]}}
        )


class PlainClient(_Floor):
    """See `Peer`."""

    name = KNOWN["plain"].name
    settings = "one prompt for all; TTFT alone is told"

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        return carried_out(KNOWN["plain"], [sys.executable, "-m", *KNOWN["plain"].begins], task)


class CLimit(_Floor):
    """See `Peer`."""

    name = "C limit"
    settings = "one prompt for all; TTFT alone is told"

    def command(self, task: Task) -> list[str]:
        """See `Peer`.

        Raises:
            RuntimeError: There is no C compiler.
        """
        return Limit(task.folder).command(task.url, MODEL, task.load, 0)

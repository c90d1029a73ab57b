"""loadgen itself, in the ways in which it is measured beside its peers."""

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.engines.environments import Recipe
from bench.peers.meter import BYTES_PER_MB
from bench.peers.peer import Reported, Task, words
from bench.peers.tools import KNOWN, carried_out, reported
from loadgen.lab.judge.tool import read

COMMAND = Path(sys.executable).with_name("loadgen")  # as a user starts it


@dataclass(frozen=True)
class Loadgen:
    """See `Peer`.

    Attributes:
        name: What tables call it.
        settings: What it is told beside the load.
        records: Whether it writes a line for each request, with the times of all its tokens.
        one_core: Whether all of it runs on one core. A connection for every request is opened
            before the clock starts: later that would take the core from the tokens.
        first_run: Whether nothing is cached of earlier runs.
    """

    name: str
    settings: str
    records: bool = False
    one_core: bool = False
    first_run: bool = False
    recipe: Recipe | None = None
    # An empty value takes a variable away. Installed packages come with their bytecode, as the
    # peers' do.
    env: Mapping[str, str] = field(default_factory=lambda: {"PYTHONDONTWRITEBYTECODE": ""})
    poisson: bool = False

    def command(self, task: Task) -> list[str]:
        """See `Peer`."""
        flags: dict[str, object] = {}
        if self.records:
            flags["--records"] = task.folder / "records.jsonl"
        if self.one_core:
            flags["--warm-connections"] = task.load.count
        pinned = ["taskset", "--cpu-list", "0"] if self.one_core else []
        pinned += ["env", f"XDG_CACHE_HOME={task.folder / 'cache'}"] if self.first_run else []
        return [
            *carried_out(KNOWN["loadgen"], [*pinned, str(COMMAND), "run"], task),
            *words(flags),
            "--no-preflight",
            "--quiet",
        ]

    def report(self, folder: Path, said: str) -> Reported:
        """See `Peer`."""
        tool = KNOWN["loadgen"]
        own = json.loads((folder / tool.result).read_text())["loadgen"]
        return judged(reported(tool, read(tool, folder, said)), own)


def judged(told: Reported, own: Mapping[str, Any]) -> Reported:
    """A report with loadgen's own verdict and memory."""
    doubts = [check["name"] for check in own["checks"] if check["ok"] is False and check["counts"]]
    says = own["verdict"] + (f": {', '.join(doubts)}" if doubts else "")
    memory_mb = own["client"]["peak_memory_bytes"] / BYTES_PER_MB
    return dataclasses.replace(told, says=says, measuring_mb=memory_mb)


OURS = (
    Loadgen("loadgen", "as it comes"),
    Loadgen(
        "loadgen --records", "with a line for each request, all its token times in it", records=True
    ),
    Loadgen(
        "loadgen on one core",
        "the same, all its processes below `taskset --cpu-list 0`, with `--warm-connections` for "
        "all requests",
        records=True,
        one_core=True,
    ),
    Loadgen("loadgen, first run", "as it comes, with empty caches", first_run=True),
)

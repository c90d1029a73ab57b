"""A study that is killed at one of its writes, without a server: `python -m
tests.helpers.killed_study FOLDER`.

For each write, from the first to the one after the last, a child carries the study out and kills
itself there; another one carries on. Prints a JSON list: how each pair ended, and what the store
then told.
"""

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.lab.study.execute import conductor
from loadgen.lab.study.execute.store import Store
from loadgen.lab.study.execute.trial import Trial, TrialRequest
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.report import findings_text as told
from loadgen.lab.study.spec.study_file import StudyFile, read
from loadgen.report import to_json
from loadgen.util.files import write_atomic
from tests.helpers.study_files import as_yaml
from tests.helpers.study_walks import trial

STAGES = [{"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}]
STUDY = {
    "stages": STAGES,
    "decision": {"repeats": {"least": 2, "most": 2}},
    "workloads": {"short": "short"},
    "engines": {"vllm": {}},
    "hardware": {"name": "a box", "devices": 0},
}


class Fake:
    """In the place of a bench: what each start achieves follows from what it is for."""

    def __init__(self, study: Any, planner: Any, root: Path) -> None:
        self._root = root

    async def run_trial(
        self, request: TrialRequest, arm: PlannedArm, folder: Path, on_progress: Any, *, asks: bool
    ) -> Trial:
        spread = int(hashlib.sha256(repr(request).encode()).hexdigest()[:4], 16) / 65536
        total = (1200.0 if "fp8" in request.arm else 1000.0) * (1 + 0.004 * spread)
        made = trial(request, total, arm.workloads, config=arm.identity)
        for name, ran in made.runs.items():
            write_atomic(folder / f"{name}.json", to_json(ran.summary))
        return made


class Silent:
    """Shows nothing."""

    def begin(self, *told: Any) -> None:
        """Nothing."""

    progress = end = begin


class Counted(sqlite3.Connection):
    """A database of which every statement is a write point, before it and after it."""

    point: Callable[[], None] = staticmethod(lambda: None)

    def execute(self, *given: Any) -> sqlite3.Cursor:  # type: ignore[override]
        self.point()
        done = super().execute(*given)
        self.point()
        return done

    def executemany(self, *given: Any) -> sqlite3.Cursor:  # type: ignore[override]
        self.point()
        return super().executemany(*given)

    def executescript(self, *given: Any) -> sqlite3.Cursor:  # type: ignore[override]
        self.point()
        return super().executescript(*given)


def child(file: StudyFile, folder: Path, last: int) -> bool:
    """Carry the study out in a child that is killed at write point `last`; whether it was."""
    pid = os.fork()
    if pid == 0:
        left = [last]

        def point() -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        connect = sqlite3.connect
        Counted.point = staticmethod(point)
        sqlite3.connect = lambda *given, **named: connect(*given, factory=Counted, **named)  # type: ignore[assignment]
        sys.addaudithook(
            lambda event, given: point() if event in ("os.mkdir", "os.rename") else None
        )
        conductor.TrialRunner = Fake  # type: ignore[misc, assignment]
        conductor.now = lambda: "2026-01-02T03:04:05Z"
        asyncio.run(conductor.conduct(file, folder, lambda engine, model: None, Silent()))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def findings(folder: Path) -> str:
    """All that a store tells, but the numbers of its starts: those that were lost have some too."""
    with Store.open(folder) as store:
        found, facts = conductor.load_findings(store)
    text = json.dumps([told.as_json(found, facts), told.as_text(found)], default=str)
    return re.sub(r"starts/\d{5}", "starts/N", text)


def main(root: Path) -> None:
    """Try every write point."""
    path = root / "study.yaml"
    path.write_text(as_yaml(**STUDY))
    file, rows, number = read(path), [], 0
    killed = True
    while killed:
        number += 1
        folder = root / str(number)
        killed = child(file, folder, number)
        again = child(file, folder, -1)
        text = findings(folder).replace(str(folder), "")
        with Store.open(folder) as store:
            rows.append(
                {"killed": killed, "again": again, "starts": len(store.trials()), "findings": text}
            )
    print(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

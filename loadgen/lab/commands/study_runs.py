"""The work of `loadgen tune run`, `status`, `export` and `report`."""

import asyncio
import signal
import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.lab.commands.study_view import StudyLines, StudyScreen, study_view
from loadgen.lab.library import SavedStudy, carry_out, load_study, store_of
from loadgen.lab.study.execute.findings import BUDGET, Findings
from loadgen.lab.study.execute.store import holder
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.report import to_json
from loadgen.util import terminal_text
from loadgen.util.packages import find

RUNNING = "running now in process {}"


def run(path: Path, folder: Path | None, *, lines: bool) -> int:
    """Run a study; returns the exit code.

    Args:
        path: Its file.
        folder: Folder of its store; None: NAME.store here.
        lines: Whether to print lines on a terminal too.
    """
    terminal_text.log_to_stderr("warning")
    file = study_file.read(path)
    store = store_of(file, folder)
    with file.named():
        expected = plan(file.study, find("launchers", "local").usual_start_s)
    with study_view(expected, lines=lines) as view:
        try:
            study = asyncio.run(_conduct(file, store, view))
        except asyncio.CancelledError:
            print(f"loadgen tune: interrupted; the same command resumes from {store}", file=sys.stderr)
            return exit_codes.INTERRUPTED
    print(study, end="")
    print(f"Store: {store}; `loadgen tune report {store}` writes the report")
    return code(study.findings)


def status(path: Path, *, as_json: bool) -> int:
    """Print the findings of a study so far; returns the exit code.

    Args:
        path: Its store, or its file.
        as_json: Whether to print one JSON object with every trial.
    """
    study = load_study(path)
    if as_json:
        print(to_json(study.data))
        return exit_codes.DONE
    print(study, end="")
    running = holder(study.store)
    print(findings_text.time_spent(study.findings) + (f"; {RUNNING.format(running)}" if running else ""))
    return exit_codes.DONE


def report(path: Path, into: Path | None) -> int:
    """Write the report of a study and print its files; returns the exit code.

    Args:
        path: Its store, or its file.
        into: Folder of the report; None: NAME.report here.
    """
    print("".join(f"Wrote: {file}\n" for file in load_study(path).write_report(into)), end="")
    return exit_codes.DONE


async def _conduct(file: StudyFile, folder: Path, view: StudyLines | StudyScreen) -> SavedStudy:
    task = asyncio.ensure_future(carry_out(file, folder, view))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            loop.add_signal_handler(number, task.cancel)
    return await task


def code(findings: Findings) -> int:
    """Return the exit code of findings."""
    if findings.nothing_feasible:
        return exit_codes.NOTHING_FEASIBLE
    return exit_codes.INTERNAL if findings.open and findings.open != BUDGET else exit_codes.DONE

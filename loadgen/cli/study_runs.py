"""The work of `loadgen tune run`, `status`, `export` and `report`."""

import asyncio
import signal
import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.cli.live.study_view import StudyLines, StudyScreen, study_view
from loadgen.report import to_json
from loadgen.tuning.execute import conductor
from loadgen.tuning.execute.findings import BUDGET, Findings
from loadgen.tuning.execute.store import Store, holder
from loadgen.tuning.plan.planner import plan
from loadgen.tuning.report import findings_text
from loadgen.tuning.spec import study_file
from loadgen.tuning.spec.study_file import StudyFile
from loadgen.util import log_setup
from loadgen.util.plugins import find
from loadgen.util.terminal_text import printable

SUFFIX, REPORT_SUFFIX = ".store", ".report"
RUNNING = "running now in process {}"


def run(path: Path, folder: Path | None, *, lines: bool) -> int:
    """Run a study; returns the exit code.

    Args:
        path: Its file.
        folder: Folder of its store; None: NAME.store here.
        lines: Whether to print lines on a terminal too.
    """
    log_setup.to_stderr("warning")
    file = study_file.read(path)
    store = folder or Path(file.study.name + SUFFIX)
    with file.named():
        expected = plan(file.study, find("launchers", "local").usual_start_s)
    with study_view(expected, lines=lines) as view:
        try:
            findings = asyncio.run(_conduct(file, store, view))
        except asyncio.CancelledError:
            print(f"loadgen tune: interrupted; the same command resumes from {store}", file=sys.stderr)
            return exit_codes.INTERRUPTED
    sys.stdout.write("".join(f"{printable(line)}\n" for line in findings_text.as_text(findings)))
    print(f"Store: {store}; `loadgen tune report {store}` writes the report")
    return code(findings)


def status(path: Path, *, as_json: bool) -> int:
    """Print the findings of a study so far; returns the exit code.

    Args:
        path: Its store, or its file.
        as_json: Whether to print one JSON object with every trial.
    """
    folder = store_of(path)
    with Store.open(folder) as store:
        findings, facts = conductor.load_findings(store)
    if as_json:
        print(to_json(findings_text.as_json(findings, facts)))
        return exit_codes.DONE
    sys.stdout.write("".join(f"{printable(line)}\n" for line in findings_text.as_text(findings)))
    running = holder(folder)
    print(findings_text.time_spent(findings) + (f"; {RUNNING.format(running)}" if running else ""))
    return exit_codes.DONE


def report(path: Path, into: Path | None) -> int:
    """Write the report of a study and print its files; returns the exit code.

    Args:
        path: Its store, or its file.
        into: Folder of the report; None: NAME.report here.
    """
    from loadgen.tuning import report as reports

    folder = store_of(path)
    with Store.open(folder) as store:
        findings, facts = conductor.load_findings(store)
    written = reports.write(findings, facts, folder, into or Path(findings.study.name + REPORT_SUFFIX))
    print("".join(f"Wrote: {file}\n" for file in written), end="")
    return exit_codes.DONE


def store_of(path: Path) -> Path:
    """Return the store of a path: the path itself, or the store of the study in that file."""
    return Path(study_file.read(path).study.name + SUFFIX) if path.is_file() else path


async def _conduct(file: StudyFile, folder: Path, view: StudyLines | StudyScreen) -> Findings:
    usual_s = find("launchers", "local").usual_start_s
    task = asyncio.ensure_future(conductor.conduct(file, folder, usual_s, view))
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

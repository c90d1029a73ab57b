"""The work of `loadgen tune run`, `status`, `export` and `report`, and the display of a running
study.

The display is a live table on a terminal, and lines elsewhere.
"""

import asyncio
import contextlib
import math
import signal
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.cli import exit_codes, output
from loadgen.cli.live.progress_line import REDRAWS_PER_S, Cadence, describe
from loadgen.cli.output import say
from loadgen.document import terminal_writer
from loadgen.lab.library import SavedStudy, carry_out, load_study, store_of
from loadgen.lab.study.execute.findings import BUDGET, Findings
from loadgen.lab.study.execute.store import holder
from loadgen.lab.study.execute.trial import Trial, TrialRequest
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.plan import Plan
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.metrics.progress import Progress
from loadgen.report import to_json
from loadgen.util import terminal_text
from loadgen.util.number_format import brief, duration, duration_range, value_range
from loadgen.util.packages import find
from loadgen.util.terminal_text import Screen, printable

LINE_EVERY_S = 10.0  # a study takes hours
TAIL_LINES = 4
TAIL_BYTES = 4096
RUNNING = "running now in process {}"


class StudyLines:
    """Prints a line for each start and each decision."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cadence = Cadence(LINE_EVERY_S, LINE_EVERY_S)
        self._phase = ""
        self._step = ""

    def begin(self, walk: Walk, request: TrialRequest, folder: Path) -> None:
        """Print the start that begins."""
        findings = walk.found()
        if request.step != self._step:
            self._step = request.step
            names = (
                ", ".join(arm.name for arm in findings.steps[-1].arms)
                or "arms are drawn while it runs"
            )
            say(f"{request.step}: {names}")
            for line in findings_text.noise_lines(findings.steps[-1]):
                say(f"  {line}")
        again = " again" if request.attempt else ""
        say(
            f"  block {request.block + 1}: {request.arm} is started{again}, "
            f"{study_time_left(walk, self.plan)}"
        )

    def progress(self, workload: str, progress: Progress) -> None:
        """Print a line when a workload begins, and every LINE_EVERY_S."""
        before = self._phase
        self._phase = f"{workload} {progress.phase}"
        if self._cadence.due(
            begins=progress.phase in ("busy", "running") and before != self._phase
        ):
            say(f"    {f'{workload}: ' if workload else ''}{describe(progress)}")

    def end(self, walk: Walk, trial: Trial) -> None:
        """Print the outcome of a start, and of its step if that has ended."""
        if trial.failure is not None:
            say(f"    {trial.request.arm} failed, {trial.failure}")
        for workload, ran in trial.runs.items():
            say(f"    {workload}: {run_text(ran.summary)} ({ran.summary['loadgen']['verdict']})")
        findings = walk.found()
        going = walk.request is not None and walk.request.step == trial.request.step
        if not going:
            step = next(step for step in findings.steps if step.step.name == trial.request.step)
            block = findings_text.step_block(step, findings.study)
            for line in terminal_writer.lines((block,), terminal_writer.USUAL_WIDTH):
                say(line)


class StudyScreen:
    """Draws a table of the stages, the current start, and the end of its log."""

    def __init__(self, live: Any, plan: Plan) -> None:
        self._live = live
        self.plan = plan
        self._walk: Walk | None = None
        self._now = ""
        self._folder = Path()

    def begin(self, walk: Walk, request: TrialRequest, folder: Path) -> None:
        """Show the start that begins."""
        self._walk = walk
        self._folder = folder
        self._now = (
            f"{request.step}, block {request.block + 1}: "
            f"{request.arm}{' again' if request.attempt else ''}"
        )
        self._draw("")

    def progress(self, workload: str, progress: Progress) -> None:
        """Show the progress of a workload."""
        self._draw(f"{workload}: {describe(progress)}" if workload else describe(progress))

    def end(self, walk: Walk, trial: Trial) -> None:
        """Show the outcome of a start."""
        if trial.failure is not None:
            line = f"{trial.request.arm} failed, {trial.failure}"
            self._live.console.print(printable(line), style="red", markup=False, highlight=False)
        self._draw("")

    def _draw(self, doing: str) -> None:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        assert self._walk is not None
        findings = self._walk.found()
        name = printable(findings.study.name)
        table = Table(
            "stage", "arms", "starts", "so far", expand=True, show_lines=True, title=f"study {name}"
        )
        for result in findings.steps:
            starts = sum(len(arm.trials) for arm in result.arms)
            lines = [
                printable(f"{arm.name}: {findings_text.arm_line(arm, findings.study)}")
                for arm in result.arms
            ]
            state = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
            table.add_row(printable(result.step.name), str(len(result.arms)), str(starts), state)
        begun = {result.step.name for result in findings.steps}
        for step in self.plan.steps:
            if step.name not in begun:
                starts_text = value_range(*step.starts)
                table.add_row(
                    printable(step.name), str(len(step.arms)), starts_text, "", style="dim"
                )
        tail = [Text(f"  {line}", style="dim") for line in log_tail(self._folder)]
        below = Text(
            f"{findings_text.time_spent(findings)}, {study_time_left(self._walk, self.plan)}; "
            "Ctrl-C stops"
        )
        now = Text(printable(f"{self._now}: {doing}" if doing else self._now), style="bold")
        self._live.update(Group(table, now, *tail, below))


@contextlib.contextmanager
def study_view(plan: Plan, *, lines: bool) -> Iterator[StudyLines | StudyScreen]:
    """Return the display for stderr."""
    console = None if lines else output.screen()
    if console is None:
        yield StudyLines(plan)
        return
    from rich.live import Live

    with Live(console=console, refresh_per_second=REDRAWS_PER_S) as live:
        yield StudyScreen(live, plan)


def study_time_left(walk: Walk, plan: Plan) -> str:
    """Estimate the time that is left from the number of starts that are left and the mean time of
    those so far.

    Waits for a quiet machine are apart: only how long they can be is known.
    """
    findings = walk.found()
    trials = findings.trials
    done = {
        result.step.name: sum(len(arm.trials) for arm in result.arms) for result in findings.steps
    }
    open_ = findings.steps[-1].step.name if findings.steps else ""
    low = 0
    high = 0
    blocks = 0
    begun = [result.step for result in findings.steps if result.step.name == open_]
    for step in [*begun, *(step for step in plan.steps if step.name not in done)]:
        starts = [max(0, number - done.get(step.name, 0)) for number in step.starts]
        low += starts[0]
        high += starts[1]
        blocks += math.ceil(starts[1] / max(1, len(step.arms)))
    if walk.request is None:
        return "nothing left"
    if not trials:
        return f"{value_range(low, high)} starts left"
    each_s = findings.seconds / len(trials)
    wait_s = plan.max_quiet_wait_of(high, blocks)
    waits = f", and up to {duration(wait_s)} of waits for a quiet machine" if wait_s else ""
    return f"about {duration_range(low * each_s, high * each_s)} left{waits}"


def run_text(summary: Any) -> str:
    """Return the main numbers of a run in one line."""
    total, ttft, tpot = (
        summary.get(key) for key in ("total_token_throughput", "median_ttft_ms", "median_tpot_ms")
    )
    parts = [f"{summary['completed']} of {summary['num_prompts']} requests"]
    parts += [f"{brief(total)} tok/s in all"] if total is not None else []
    parts += [f"TTFT {brief(ttft)} ms"] if ttft is not None else []
    parts += [f"TPOT {brief(tpot)} ms"] if tpot is not None else []
    return ", ".join(parts)


def log_tail(folder: Path) -> list[str]:
    """Return the last lines of the engine's log of a start."""
    for path in sorted(folder.glob("*/engine.log")):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            last = deque(file.read().decode(errors="replace").splitlines(), TAIL_LINES)
        return [printable(line)[:200] for line in last]
    return []


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
            print(
                f"loadgen tune: interrupted; the same command resumes from {store}", file=sys.stderr
            )
            return exit_codes.INTERRUPTED
    _print_findings(study)
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
    _print_findings(study)
    running = holder(study.store)
    print(
        findings_text.time_spent(study.findings)
        + (f"; {RUNNING.format(running)}" if running else "")
    )
    return exit_codes.DONE


def _print_findings(study: SavedStudy) -> None:
    print(findings_text.as_text(study.findings, Screen.of(sys.stdout)), end="")


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

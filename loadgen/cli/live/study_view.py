"""Study view: how a study goes, as a table that is drawn again and again on a terminal, and as lines elsewhere."""

import contextlib
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.cli.live.progress_line import REDRAWS_PER_S, Cadence, describe
from loadgen.tuning.report import findings_text
from loadgen.util.number_format import duration_range, value_range
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.tuning.execute.trial import Trial, Wanted
    from loadgen.tuning.execute.walk import Walk
    from loadgen.tuning.plan.plan import Plan

LINE_EVERY_S = 10.0  # a study takes hours
TAIL_LINES = 4
TAIL_BYTES = 4096


class Lines:
    """A line for each start and each decision, for logs.

    Args:
        plan: What is expected to be started.
    """

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self._cadence, self._phase = Cadence(LINE_EVERY_S, LINE_EVERY_S), ""
        self._step = ""

    def begin(self, walk: "Walk", wanted: "Wanted", folder: Path) -> None:
        """Say which start it is."""
        findings = walk.found()
        if wanted.step != self._step:
            self._step = wanted.step
            self.say(f"{wanted.step}: {', '.join(arm.name for arm in findings.steps[-1].arms) or 'drawn as it goes'}")
            for line in findings_text.noise_lines(findings.steps[-1]):
                self.say(f"  {line}")
        again = " once more" if wanted.attempt else ""
        self.say(f"  block {wanted.block + 1}: {wanted.arm} is started{again}, {left(walk, self.plan)}")

    def progress(self, workload: str, progress: "Progress") -> None:
        """A line as a workload begins, and if the last one is old."""
        before, self._phase = self._phase, f"{workload} {progress.phase}"
        if self._cadence.due(begins=progress.phase == "running" and before != self._phase):
            self.say(f"    {workload or 'engine'}: {describe(progress)}")

    def end(self, walk: "Walk", trial: "Trial") -> None:
        """Say what came of it, and what is decided with it."""
        if trial.failure is not None:
            self.say(f"    {trial.wanted.arm} failed, {trial.failure.kind}: {trial.failure.cause}")
        for workload, ran in trial.runs.items():
            self.say(f"    {workload}: {achieved(ran.summary)} ({ran.summary['loadgen']['verdict']})")
        findings = walk.found()
        going = walk.wanted is not None and walk.wanted.step == trial.wanted.step
        if not going:
            step = next(found for found in findings.steps if found.step.name == trial.wanted.step)
            for line in findings_text.step_lines(step, findings.study):
                self.say(line)

    def say(self, text: str) -> None:
        """A line on stderr."""
        print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)


class Screen:
    """A table of the stages, what runs now, and the end of its log.

    Args:
        live: What rich draws.
        plan: What is expected to be started.
    """

    def __init__(self, live: Any, plan: "Plan") -> None:
        self._live, self.plan = live, plan
        self._walk: Walk | None = None
        self._now, self._folder = "", Path()

    def begin(self, walk: "Walk", wanted: "Wanted", folder: Path) -> None:
        """Show which start it is."""
        self._walk, self._folder = walk, folder
        self._now = f"{wanted.step}, block {wanted.block + 1}: {wanted.arm}{' once more' if wanted.attempt else ''}"
        self._draw("")

    def progress(self, workload: str, progress: "Progress") -> None:
        """Show how far it is."""
        self._draw(f"{workload}: {describe(progress)}" if workload else describe(progress))

    def end(self, walk: "Walk", trial: "Trial") -> None:
        """Show what is decided with it."""
        if trial.failure is not None:
            line = f"{trial.wanted.arm} failed, {trial.failure.kind}: {trial.failure.cause}"
            self._live.console.print(printable(line), style="red", markup=False, highlight=False)
        self._draw("")

    def _draw(self, doing: str) -> None:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        assert self._walk is not None
        findings = self._walk.found()
        name = printable(findings.study.name)
        table = Table("stage", "arms", "starts", "so far", expand=True, show_lines=True, title=f"study {name}")
        for found in findings.steps:
            starts = sum(len(arm.trials) for arm in found.arms)
            lines = [printable(f"{arm.name}: {findings_text.arm_line(arm, findings.study)}") for arm in found.arms]
            state = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
            table.add_row(printable(found.step.name), str(len(found.arms)), str(starts), state)
        begun = {found.step.name for found in findings.steps}
        for step in self.plan.steps:
            if step.name not in begun:
                starts_text = value_range(*step.starts)
                table.add_row(printable(step.name), str(len(step.arms)), starts_text, "", style="dim")
        tail = [Text(f"  {line}", style="dim") for line in log_tail(self._folder)]
        below = Text(
            f"{findings_text.duration_of(findings)}, {left(self._walk, self.plan)}; Ctrl-C stops, and it goes on later"
        )
        now = Text(printable(f"{self._now}: {doing}" if doing else self._now), style="bold")
        self._live.update(Group(table, now, *tail, below))


@contextlib.contextmanager
def study_view(plan: "Plan", *, lines: bool) -> Iterator[Lines | Screen]:
    """The view that suits where stderr goes.

    Args:
        plan: What is expected to be started.
        lines: Have lines, also on a terminal.
    """
    if lines or not sys.stderr.isatty():
        yield Lines(plan)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=REDRAWS_PER_S) as live:
        yield Screen(live, plan)


def left(walk: "Walk", plan: "Plan") -> str:
    """About how long the study will go on: starts that are left, as long as those so far have been."""
    findings = walk.found()
    trials = findings.trials
    done = {found.step.name: sum(len(arm.trials) for arm in found.arms) for found in findings.steps}
    open_ = findings.steps[-1].step.name if findings.steps else ""
    least = most = 0
    begun = [found.step for found in findings.steps if found.step.name == open_]
    for step in [*begun, *(step for step in plan.steps if step.name not in done)]:
        fewest, many = step.starts
        least += max(0, fewest - done.get(step.name, 0))
        most += max(0, many - done.get(step.name, 0))
    if walk.wanted is None:
        return "nothing to come"
    if not trials:
        return f"{value_range(least, most)} starts to come"
    each_s = findings.seconds / len(trials)
    return f"about {duration_range(least * each_s, most * each_s)} to go"


def achieved(summary: Any) -> str:
    """The numbers of a run that one looks at first."""
    total, ttft, tpot = (summary.get(key) for key in ("total_token_throughput", "median_ttft_ms", "median_tpot_ms"))
    parts = [f"{summary['completed']} of {summary['num_prompts']} requests"]
    parts += [f"{total:,.1f} tok/s in all"] if total is not None else []
    parts += [f"TTFT {ttft:,.1f} ms"] if ttft is not None else []
    parts += [f"TPOT {tpot:,.2f} ms"] if tpot is not None else []
    return ", ".join(parts)


def log_tail(folder: Path) -> list[str]:
    """The last lines that the engine of a start has said."""
    for path in sorted(folder.glob("*/engine.log")):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            last = deque(file.read().decode(errors="replace").splitlines(), TAIL_LINES)
        return [printable(line)[:200] for line in last]
    return []

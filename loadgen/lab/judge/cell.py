"""Cell: one tool in one case: run, kept in a folder, and scored."""

import contextlib
import hashlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from loadgen.lab.judge import tool as tools
from loadgen.lab.judge import truth
from loadgen.lab.judge.case import Case, Disturbance
from loadgen.lab.judge.tool import CHAT, Printed, Task, Tool
from loadgen.lab.judge.truth import SENT, TOLERANCES, Range, Served
from loadgen.testing.faulty import MODEL
from loadgen.testing.process import started

STOP_S, REST_S, WATCH_S = 0.2, 8.0, 0.02
START_S = 180.0  # until a tool has sent its first request, which a busy machine delays
ROUNDS = 3  # of a case whose times are wrong in the first: a machine is never wholly quiet
OF_TIME = r"_ms$|_rate$|^sent_peak$"  # figures that depend on what else the machine does
INTERRUPTS = 2  # some tools wait for requests in flight after the first
CELL, OUTPUT, LOG, WRITTEN = "cell.json", "output.txt", "server.jsonl", "written"
SERVER = "loadgen.lab.judge.server"


class Judgement(StrEnum):
    """What is said of a cell, the worst of its figures; better ones first."""

    RIGHT = "right"
    NOT_PRINTED = "not printed"
    NOT_ASKED = "cannot be asked"
    WRONG_SAID = "wrong, said"
    WRONG_SILENT = "wrong, silent"
    NO_REPORT = "no report"


class Score(msgspec.Struct, frozen=True):
    """One figure.

    Attributes:
        figure: Its name.
        printed: What the tool printed, or the server saw; None: nothing.
        low, high: What is true, between two conventions; None: there is no such figure.
        error: Relative to what is true; None: it cannot be said.
        right: Whether that is within the tolerance; None: nothing was printed.
    """

    figure: str
    printed: float | None
    low: float | None
    high: float | None
    error: float | None
    right: bool | None


class Cell(msgspec.Struct, frozen=True):
    """One tool in one case.

    Attributes:
        tool, case: Their names.
        command: As it was run.
        exit_code: Of the tool; None: it was stopped.
        wall_s: How long it ran.
        says: What it said that it does not say of a sound server.
        scores: Of each figure of the case.
        judgement: Of the whole.
        key: Of the case, the tool and the command: another one is run again.
        why: Why it cannot be asked, or gave no report.
        machine_load: The load average when it began, per processor.
        missing: Figures of the tool's file that were not found.
    """

    tool: str
    case: str
    command: str
    exit_code: int | None
    wall_s: float
    says: tuple[str, ...]
    scores: tuple[Score, ...]
    judgement: Judgement
    key: str
    why: str = ""
    machine_load: float = 0.0
    missing: tuple[str, ...] = ()


def score(figure: str, printed: float | None, true: Range | None) -> Score:
    """Score one figure."""
    if true is None:
        return Score(figure, printed, None, None, None, printed is None)
    if printed is None:
        return Score(figure, None, true.low, true.high, None, None)
    off = true.off(printed)
    nearest = min(true, key=lambda bound: abs(bound - printed))
    allowed = TOLERANCES[figure]
    right = off <= max(allowed.share * abs(nearest), allowed.absolute) + 1e-9
    return Score(figure, printed, true.low, true.high, _error(printed, nearest), right)


def scores(
    case: Case, tool: Tool, printed: Printed, requests: Sequence[Served]
) -> tuple[Score, ...]:
    """Score the figures of a case."""
    true = truth.true_figures(requests)
    sent = truth.sent_figures(requests)
    asked = truth.asked_figures(case.load, is_poisson=tool.is_poisson)
    return tuple(
        score(name, sent.get(name), asked[name])
        if name.startswith(SENT)
        else score(name, printed.figures.get(name), true.get(name))
        for name in case.figures
    )


def judgement(printed: Printed, scored: Sequence[Score], *, said: bool, requests: int) -> Judgement:
    """Return what is said of a cell.

    Args:
        printed: What the tool printed.
        scored: Its figures.
        said: Whether it said that something was off.
        requests: How many came to the server.
    """
    if not requests:
        return Judgement.NO_REPORT
    if not printed.figures and not all(each.figure.startswith(SENT) for each in scored):
        return Judgement.NO_REPORT
    if is_wrong(scored):
        return Judgement.WRONG_SAID if said else Judgement.WRONG_SILENT
    shown = any(each.right and each.printed is not None for each in scored)
    return Judgement.RIGHT if shown else Judgement.NOT_PRINTED


def remarks(case: Case, tool: Tool, says: Sequence[str], always: Sequence[str]) -> tuple[str, ...]:
    """Return what a tool says of this case: not what it always says, nor, where time is not the
    subject, of the machine.
    """
    known = {_without_numbers(text) for text in always}
    return tuple(
        text
        for text in says
        if _without_numbers(text) not in known
        and not (tool.machine and case.group != "time" and re.search(tool.machine, text))
    )


def key(case: Case, tool: Tool, begins: Sequence[str]) -> str:
    """Return what identifies a cell: what the case says and asks, the tool's file, the command."""
    about = [
        case.does,
        case.figures,
        case.load,
        msgspec.to_builtins(tool),
        list(begins),
    ]

    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def kept(folder: Path, wanted: str, begins: Sequence[str] = ()) -> Cell | None:
    """Return the cell of a folder, if it is that of this key; None where a file of the command is
    newer.
    """
    path = folder / CELL
    if not path.exists():
        return None
    made_ns = path.stat().st_mtime_ns
    files = [Path(word) for word in (*map(shutil.which, begins[:1]), *begins[1:]) if word]
    if any(file.is_file() and file.stat().st_mtime_ns > made_ns for file in files):
        return None
    cell = msgspec.json.decode(path.read_bytes(), type=Cell)
    return cell if cell.key == wanted else None


def judged(
    case: Case,
    tool: Tool,
    begins: Sequence[str],
    folder: Path,
    tokenizer: Path,
    always: Sequence[str],
) -> Cell:
    """Run a tool in a case, and keep all of it.

    Args:
        case: The case.
        tool: The tool.
        begins: The words that start it.
        folder: Of the cell; emptied.
        tokenizer: A folder with a tokenizer.json.
        always: What the tool says of a sound server.

    Raises:
        LoadgenError: The server did not start.
    """
    identity = key(case, tool, begins)
    shutil.rmtree(folder, ignore_errors=True)
    if why := unasked(case, tool):
        return written(
            Cell(tool.name, case.name, "", None, 0.0, (), (), Judgement.NOT_ASKED, identity, why),
            folder,
        )
    rounds = list[Round]()
    machine_load = os.getloadavg()[0] / (os.cpu_count() or 1)
    while not rounds or (is_wrong_in_time(rounds[0].scores) and len(rounds) < ROUNDS):
        place = folder / f"round-{len(rounds) + 1}"
        rounds.append(attempted(case, tool, begins, place, tokenizer))
    last = rounds[-1]
    said_in_all = dict.fromkeys(text for each in rounds for text in each.printed.says)
    says = remarks(case, tool, list(said_in_all), always)
    scored = middle([each.scores for each in rounds])
    said = bool(says) or last.exit_code is None or (last.exit_code and not last.printed.figures)
    judged_as = judgement(last.printed, scored, said=bool(said), requests=last.requests)
    output = folder / f"round-{len(rounds)}" / OUTPUT
    cell = Cell(
        tool.name,
        case.name,
        last.command,
        last.exit_code,
        round(sum(each.wall_s for each in rounds), 1),
        says,
        scored,
        judged_as,
        identity,
        failure(output, last) if judged_as is Judgement.NO_REPORT else "",
        round(machine_load, 1),
        tuple(name for name in tool.figures if name not in last.printed.figures),
    )
    return written(cell, folder)


def unasked(case: Case, tool: Tool) -> str:
    """Return why a tool cannot be asked for the load of a case; empty: it can."""
    if case.chat and tool.api != CHAT:
        return f"the case is one of chat completions, the api of the tool is {tool.api}"
    if not tools.load_words(tool, case.load):
        return f"its file has no words for {tools.load_name(case.load)}"
    return ""


def failure(output: Path, last: "Round") -> str:
    """Return why a tool gave no report: how it ended, and the first error that it printed."""
    lines = [line.strip() for line in output.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if re.search(r"error|exception|not found", line, re.I)]
    ended = f"exit code {last.exit_code}"
    if last.exit_code is None:
        ended = f"it had to be stopped after {last.wall_s:.0f} s"
    if not last.requests:
        ended += ", no request came to the server"
    elif not last.exit_code:
        ended += ", none of its figures was found"
    said = next(iter(errors or [line for line in lines if line]), "it printed nothing")
    return f"{ended}; {output}: {said}"


def written(cell: Cell, folder: Path) -> Cell:
    """Write a cell into its folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CELL).write_bytes(msgspec.json.format(msgspec.json.encode(cell)))
    return cell


@dataclass(frozen=True, slots=True)
class Round:
    """One run of a tool in a case.

    Attributes:
        command: Its command line.
        exit_code: Of the tool; None: it was stopped.
        wall_s: How long it ran.
        printed: What it printed.
        scores: Of each figure of the case.
        requests: How many came to the server.
    """

    command: str
    exit_code: int | None
    wall_s: float
    printed: Printed
    scores: tuple[Score, ...]
    requests: int


def attempted(
    case: Case, tool: Tool, begins: Sequence[str], folder: Path, tokenizer: Path
) -> Round:
    """Run a tool once in a case; all that it prints and the server's log stay in the folder."""
    (folder / WRITTEN).mkdir(parents=True)
    log = folder / LOG
    flags = ["--case", case.name, "--tokenizer", str(tokenizer / "tokenizer.json")]
    flags += ["--log", str(log), "--user", str(os.getpid())]
    with started(SERVER, *flags) as server:
        url = server.url.replace("127.0.0.1", case.host)
        task = Task(url, MODEL, tokenizer, (folder / WRITTEN).resolve(), case.load)
        command = tools.command_line(tool, begins, task)
        began_s = time.monotonic()
        with (folder / OUTPUT).open("w") as output, disturbed(case.disturbance, log, case) as watch:
            code = run(command, tool, output.fileno(), case.limit_s, watch, log)
        wall_s = time.monotonic() - began_s
    printed = tools.read(tool, folder / WRITTEN, (folder / OUTPUT).read_text(errors="replace"))
    requests = truth.read(log)[tool.before :]
    scored = scores(case, tool, printed, requests)
    return Round(shlex.join(command), code, wall_s, printed, scored, len(requests))


def is_wrong(scored: Sequence[Score]) -> bool:
    """Return whether a figure is wrong."""
    return any(score.right is False for score in scored)


def is_wrong_in_time(scored: Sequence[Score]) -> bool:
    """Return whether figures are wrong, all of which another round may have right."""
    wrong = [score.figure for score in scored if score.right is False]
    return bool(wrong) and all(re.search(OF_TIME, figure) for figure in wrong)


def middle(rounds: Sequence[tuple[Score, ...]]) -> tuple[Score, ...]:
    """Return of each figure the score with the middle error; one without a figure is the worst."""

    def badness(score: Score) -> float:
        if score.right is None:
            return math.inf
        return abs(score.error or 0.0) + (0 if score.right else 1)

    return tuple(
        sorted(scored, key=badness)[len(scored) // 2] for scored in zip(*rounds, strict=True)
    )


def run(
    command: Sequence[str],
    tool: Tool,
    output: int,
    limit_s: float,
    watch: Callable[[int], None],
    log: Path,
) -> int | None:
    """Run a tool to its end; returns its exit code, None if it had to be stopped.

    Args:
        command: Its command line.
        tool: The tool.
        output: The descriptor of the file for what it prints.
        limit_s: When it is interrupted, as by Ctrl-C, and again; then it is killed. From the first
            request on.
        watch: Is called with its process group.
        log: The server's.
    """
    env = {name: value for name, value in (os.environ | tool.env).items() if value}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        start_new_session=True,
    ) as process:
        watch(process.pid)
        start_ends_s = time.monotonic() + START_S
        try:
            while not _came(log) and time.monotonic() < start_ends_s:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(WATCH_S)
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            for _ in range(INTERRUPTS):
                os.killpg(process.pid, signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(REST_S)
                    break
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def disturbed(kind: Disturbance, log: Path, case: Case) -> Iterator[Callable[[int], None]]:
    """Disturb the client for the length of a block; yields what is told its process group."""
    busy = []
    if kind is Disturbance.BUSY:
        counting = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(counting) for _ in range(os.cpu_count() or 1)]
    ended = threading.Event()

    def stop(group: int) -> None:
        while not ended.wait(WATCH_S) and _came(log) < case.load.count // 2:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGSTOP)
            time.sleep(STOP_S)
            os.killpg(group, signal.SIGCONT)

    def watch(group: int) -> None:
        if kind is Disturbance.STOPPED:
            threading.Thread(target=stop, args=(group,), daemon=True).start()

    try:
        yield watch
    finally:
        ended.set()
        for process in busy:
            process.kill()
            process.wait()


def _came(log: Path) -> int:
    return log.read_bytes().count(b'"request":')


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+(?:[.,]\d+)*", "#", text)


def _error(printed: float, true: float) -> float | None:
    if not true:
        return None if printed else 0.0
    error = printed / true - 1
    return round(error, 4) if math.isfinite(error) else None

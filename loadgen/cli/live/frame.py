"""Frame: what the live view shows of a run, as lines of styled text, made of nothing but what is known of it.

Columns stand where they are however large the numbers grow. Where the terminal is narrow, columns and remarks are left
out from the right; where it is low, the rows that matter least.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadgen.cli.live.cadence import rest_s
from loadgen.cli.live.client_health import troubles
from loadgen.cli.live.log_lines import describe, silence
from loadgen.cli.live.pace import History
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import DONE, Progress
from loadgen.util.number_format import clock_time, percent
from loadgen.util.terminal_text import display_width, fit_width, printable, truncate, wrap

LABEL, CELL, FIELD, GAP = 15, 12, 17, "   "
LEAST_NOTE = 8
BAR, LEAST_BAR = 40, 10
PLAIN, FAINT, STRONG, BAD, FULL = "", "dim", "bold", "bold red", "green"
BLANK = 12  # the rank of what is left out first

Span = tuple[str, str]  # text, and the style that it is in
Line = list[Span]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the frame.

    Attributes:
        rank: 0 is never left out; the higher, the sooner it is.
        line: Its text.
    """

    rank: int
    line: Line


def frame(
    settings: RunSettings, progress: Progress, history: History, width: int, height: int, *, ascii_only: bool = False
) -> list[Line]:
    """What is shown, at most `height` lines of `width` columns.

    Args:
        settings: Of the run.
        progress: What is known of it.
        history: The same for its last seconds.
        width, height: Of the terminal.
        ascii_only: Whether it can show nothing else.
    """
    if not progress.begun:
        return [_fitting(line, width) for line in _waiting(progress, width, ascii_only)[:height]]
    rows = [
        Row(0, _head(progress, width, ascii_only)),
        Row(BLANK, []),
        *_rates(settings, progress, history, width),
        *_requests(progress, width),
        Row(BLANK, []),
        *_latencies(settings, progress, width),
        *_sides(progress, width),
    ]
    while len(rows) > height and (worst := max(row.rank for row in rows)):
        rows = [row for row in rows if row.rank < worst]
    return [_fitting(row.line, width) for row in rows]


def _waiting(progress: Progress, width: int, ascii_only: bool) -> list[Line]:
    """Before the clock starts: what is done, and how far it is where that is known."""
    said = printable(describe(progress))
    if not progress.scheduled:
        return [[(line, PLAIN)] for line in wrap(said, width)]
    share = progress.ended / progress.scheduled
    return [[*_bar(share, LEAST_BAR, ascii_only), (f"{share:>5.0%}  {said}", PLAIN)]]


def _head(progress: Progress, width: int, ascii_only: bool) -> Line:
    if whole := _to_end(progress):
        share = progress.ended / whole
    else:
        share = progress.elapsed_s / (progress.sending_s or math.inf)
    phase, times = f"{progress.phase:<10}", f"{min(share, 1.0):>5.0%}{clock_time(progress.elapsed_s):>9}"
    left = f"   {_left(progress):<16}"
    bar = width - len(phase) - len(times) - len(left)
    if bar < LEAST_BAR:
        bar, left = bar + len(left), ""
    return [(phase, STRONG), *_bar(share, min(bar, BAR), ascii_only), (times, PLAIN), (left, PLAIN)]


def _to_end(progress: Progress) -> int:
    """How many requests there will have been: the schedule's, or those sent once no more are; 0: nobody knows."""
    return progress.scheduled if progress.phase == "running" else progress.ended + progress.in_flight


def _left(progress: Progress) -> str:
    """How much is to come: by the schedule where that decides, else at the pace so far."""
    if progress.phase == DONE:
        return ""
    if progress.phase == "draining":
        return f"waiting for {progress.in_flight:,}"
    seconds = rest_s(progress.ended, progress.scheduled, progress.elapsed_s)
    if progress.sending_s is not None and not progress.waiting:
        seconds = max(0.0, progress.sending_s - progress.elapsed_s) + (progress.e2el.p50_ms or 0.0) / 1e3
    return "" if seconds is None else f"about {clock_time(seconds)} left"


def _rates(settings: RunSettings, progress: Progress, history: History, width: int) -> Iterator[Row]:
    now, so_far = history.now(), history.so_far()

    def row(label: str, name: str, total: int, note: str = "") -> Line:
        cells = [_rate(None if pace is None else getattr(pace, name)) for pace in (now, so_far)]
        return _row(label, [*cells, _count(total)], width, note)

    yield Row(3, _row("", ["now", "so far", "in all"], width, style=FAINT))
    if not progress.closed_loop:  # there a request is due when it can be sent
        yield Row(10, row("requests due", "due", progress.due, _asked(settings)))
    yield Row(3, row("requests sent", "sent", progress.sent))
    of_all = f"of {whole:,}" if (whole := _to_end(progress)) else ""
    yield Row(7, row("requests ended", "ended", progress.ended, of_all))
    tokens = round(progress.streamed_tokens * progress.tokens_per_counted)
    yield Row(4, row("output tokens", "tokens", tokens))


def _asked(settings: RunSettings) -> str:
    """The rate that is wanted, where there is one."""
    if settings.ramp_up_strategy is not None:
        return f"asked {settings.ramp_up_start_rps:g} to {settings.ramp_up_end_rps:g}/s"
    return f"asked {settings.request_rate:g}/s" if math.isfinite(settings.request_rate) else ""


def _requests(progress: Progress, width: int) -> Iterator[Row]:
    cap = progress.cap
    notes = [f"at most {cap:,}"] if cap else []
    if progress.waiting:
        notes.append(f"{progress.waiting:,} {'wait for a slot' if cap else 'late'}")
    yield Row(5, _row("in flight", [_count(progress.in_flight)], width, ", ".join(notes)))
    if progress.not_ok:
        each = ", ".join(f"{name} {n:,}" for name, n in progress.failures.items() if name != Outcome.CANCELLED)
        yield Row(1, _row("not ok", [_count(progress.not_ok)], width, each, style=BAD))
    if progress.cancelled:
        yield Row(1, _row("cancelled", [_count(progress.cancelled)], width))
    if progress.silent:
        yield Row(1, _row("silent streams", [_count(len(progress.silent))], width, silence(progress), style=BAD))


def _latencies(settings: RunSettings, progress: Progress, width: int) -> Iterator[Row]:
    gaps = ("ITL", progress.itl) if progress.imputed_gaps else ("ICL", progress.icl)
    since = f"from {settings.latency_from}"
    yield Row(6, _row("latency (ms)", ["p50", "p90", "p99", "values"], width, style=FAINT))
    rows = [(6, f"TTFT {since}", progress.ttft), (8, *gaps), (9, f"E2EL {since}", progress.e2el)]
    for rank, label, sketch in [*rows, (11, "lag", progress.lag), (11, "loop stall", progress.loop_stall)]:
        yield Row(rank, _row(label, _summary(sketch), width))


def _sides(progress: Progress, width: int) -> Iterator[Row]:
    """Both sides: whether this client keeps up, and what the server says of itself."""
    wrong = list(troubles(progress))
    note = f"SUSPECT: {', '.join(wrong)}" if wrong else "keeps up" if progress.lag.counts else ""
    yield Row(2, _row("client", [f"{percent(progress.busy_share)} busy"], width, note, style=BAD if wrong else PLAIN))
    said = [
        f"{title} {progress.server[name]:>{size}{form}}"
        for name, title, size, form in (
            ("running", "running", 6, ",.0f"),
            ("waiting", "waiting", 6, ",.0f"),
            ("kv_usage", "KV cache", 4, ".0%"),
        )
        if name in progress.server
    ]
    if said:
        yield Row(10, _row("server", said, width, cell_width=FIELD))


def _row(
    label: str, cells: Sequence[str], width: int, note: str = "", style: str = PLAIN, *, cell_width: int = CELL
) -> Line:
    """A label, as many cells as fit, and as much of a remark as fits where all of them do."""
    shown = cells[: max(0, width - LABEL) // cell_width]
    line = [(f"{label:<{LABEL}}", FAINT), ("".join(f"{cell:>{cell_width}}" for cell in shown), style)]
    room = width - LABEL - cell_width * len(cells) - len(GAP)
    if note and room >= LEAST_NOTE:
        line.append((GAP + truncate(note, room), style))
    return line


def _bar(share: float, width: int, ascii_only: bool) -> Line:
    full = round(min(max(share, 0.0), 1.0) * max(width, 0))
    done, open_ = ("#", ".") if ascii_only else ("━", "━")
    return [(done * full, FULL), (open_ * (width - full), FAINT)]


def _fitting(line: Line, width: int) -> Line:
    spans, room = [], width
    for text, style in line:
        spans.append((fit_width(text, room), style))
        room -= display_width(spans[-1][0])
    return spans


def _summary(sketch: Sketch) -> list[str]:
    return [*map(_ms, (sketch.p50_ms, sketch.p90_ms, sketch.p99_ms)), _count(sketch.count)]


def _ms(value: float | None) -> str:
    """Three digits: a sketch is good for no more."""
    return "n/a" if value is None else f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def _rate(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.{0 if value >= 1000 else 1}f}/s"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number / 1e9:,.3f}e9"

"""The frame of the live view: the progress of a run as lines of styled text; a pure function of
that progress.

Columns keep their places however large the numbers grow. On a narrow terminal columns and notes are
dropped from the right; on a low one the least important rows are dropped.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.cli.live.history import History, bars
from loadgen.cli.live.progress_line import describe, left_s, longest_silence
from loadgen.cli.live.verdict_so_far import LimitSoFar, State, slo_so_far, verdict_so_far
from loadgen.config.settings import RunSettings
from loadgen.config.target import SIMULATOR
from loadgen.core.outcome import Cause, ended_by, is_failure
from loadgen.document import SEPARATOR, Colour, Part
from loadgen.metrics.progress import DONE, Progress
from loadgen.report import load_line
from loadgen.util.number_format import LONG_MS, clock_time, duration, latency, percent, plural
from loadgen.util.terminal_text import printable, truncate, wrap

if TYPE_CHECKING:
    from rich.text import Text

LABEL, CELL, FIELD, GAP = 15, 12, 17, "   "
MIN_NOTE = 8
MAX_BAR, MIN_BAR = 40, 10
PLAIN, FAINT, STRONG, BAD, FULL = "", "dim", "bold", "bold red", "green"
BLANK = 13  # the rank of empty rows, which are dropped first
WIDE = 119  # columns from which there are charts; the last one of a terminal stays free
MAX_CHART_HEIGHT = 6
COLOURS = {Colour.RED: BAD, Colour.YELLOW: "yellow", Colour.GREEN: FULL, Colour.NONE: PLAIN}
STATES = {State.MET: FULL, State.MISSED: BAD, State.CLOSE: PLAIN, State.TOO_FEW: FAINT}

Line = list[tuple[str, str]]  # pieces of text, each with its style


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the frame.

    Attributes:
        rank: Rows of the highest rank are dropped first; rank 0 is never dropped.
        line: The text.
    """

    rank: int
    line: Line


def frame(
    settings: RunSettings,
    progress: Progress,
    history: History,
    width: int,
    height: int,
    *,
    ascii_only: bool = False,
) -> "list[Text]":
    """Lay out the progress of a run in at most `height` lines of `width` columns.

    Args:
        settings: The settings of the run.
        progress: The latest progress.
        history: The run so far.
        width: The width of the terminal, columns.
        height: The height of the terminal, lines.
        ascii_only: The terminal shows only ASCII.
    """
    if not progress.begun:
        return [_text(line, width) for line in _before_clock(progress, width, ascii_only)[:height]]
    limits = [] if settings.slo is None else list(slo_so_far(settings.slo, progress))
    rows = [
        Row(5, [(truncate(printable(load_text(settings, progress)), width), PLAIN)]),
        Row(0, _progress_bar(progress, width, ascii_only)),
        *(
            Row(1, line)
            for line in _joined(verdict_so_far(settings, progress, history, limits), width)
        ),
        Row(BLANK, []),
        *_rates(settings, progress, history, width),
        *_requests(progress, width),
        Row(BLANK, []),
        *_latencies(settings, progress, width),
        *_slo(limits, width),
        *_client_and_server(progress, width),
    ]
    if width >= WIDE:
        rows += _charts(settings, history, height - len(rows), ascii_only)
    while len(rows) > height and (worst := max(row.rank for row in rows)):
        rows = [row for row in rows if row.rank < worst]
    return [_text(row.line, width) for row in rows]


def load_text(settings: RunSettings, progress: Progress) -> str:
    """Describe what is asked, of which model.

    Args:
        settings: The settings of the run.
        progress: Has the number of scheduled requests.
    """
    size = plural(progress.scheduled, "request") if progress.scheduled else ""
    time = duration(settings.duration) if settings.duration is not None else ""
    spacing = (
        f" ({load_line.spacing(settings.burstiness)})"
        if math.isfinite(settings.request_rate)
        else ""
    )
    data = f"data set {settings.dataset_name}"
    if settings.dataset_name == "random":
        out = f", {settings.random_output_len} out" if settings.streams else ""
        data = f"random {settings.random_input_len} in{out}"
    parts = (
        "SIMULATED ENGINE" if settings.engine == SIMULATOR else None,
        settings.model and (settings.served_model_name or settings.model),
        load_line.pace(settings) + spacing,
        load_line.cap(settings),
        data,
        " in ".join(filter(None, (size, time))),
    )
    return ", ".join(filter(None, parts))


def _before_clock(progress: Progress, width: int, ascii_only: bool) -> list[Line]:
    """Describe the phase before the clock starts, with a bar if its length is known."""
    text = printable(describe(progress))
    if not progress.scheduled:
        return [[(line, PLAIN)] for line in wrap(text, width)]
    share = progress.ended / progress.scheduled
    return [[*_bar(share, MIN_BAR, ascii_only), (f"{share:>5.0%}  {text}", PLAIN)]]


def _progress_bar(progress: Progress, width: int, ascii_only: bool) -> Line:
    if total := _request_total(progress):
        share = progress.ended / total
    else:
        share = progress.elapsed_s / (progress.sending_s or math.inf)
    phase, times = (
        f"{progress.phase:<10}",
        f"{min(share, 1.0):>5.0%}{clock_time(progress.elapsed_s):>9}",
    )
    left = f"   {_time_left(progress):<16}"
    bar = width - len(phase) - len(times) - len(left)
    if bar < MIN_BAR:
        bar, left = bar + len(left), ""
    return [
        (phase, STRONG),
        *_bar(share, min(bar, MAX_BAR), ascii_only),
        (times, PLAIN),
        (left, PLAIN),
    ]


def _request_total(progress: Progress) -> int:
    """Return the number of requests of the run: scheduled or, while draining, sent; 0 if it is
    not known.
    """
    return (
        progress.scheduled if progress.phase == "running" else progress.ended + progress.in_flight
    )


def _time_left(progress: Progress) -> str:
    """Describe the time left: by the schedule if requests are sent on time, else by the pace so
    far.
    """
    if progress.phase == DONE:
        return ""
    if progress.phase == "draining":
        return f"{plural(progress.in_flight, 'answer')} open"
    seconds = left_s(progress.ended, progress.scheduled, progress.elapsed_s)
    if progress.sending_s is not None and not progress.waiting:
        seconds = (
            max(0.0, progress.sending_s - progress.elapsed_s) + (progress.e2el.p50_ms or 0.0) / 1e3
        )
    return "" if seconds is None else f"about {clock_time(seconds)} left"


def _rates(
    settings: RunSettings, progress: Progress, history: History, width: int
) -> Iterator[Row]:
    now, so_far = history.now(), history.so_far()

    def row(rank: int, label: str, name: str, total: int, note: str = "") -> Row:
        values = [None if pace is None else getattr(pace, name) for pace in (now, so_far)]
        cells = [
            "n/a" if value is None else f"{value:.{0 if value >= 1000 else 1}f}/s"
            for value in values
        ]
        return _row(rank, label, [*cells, _count(total)], width, note)

    yield _row(3, "", ["now", "so far", "in all"], width, style=FAINT)
    if not progress.closed_loop:  # there a request is due when it can be sent
        yield row(10, "requests due", "due", progress.due, _requested_rate(settings))
    yield row(3, "requests sent", "sent", progress.sent)
    of_all = f"of {total}" if (total := _request_total(progress)) else ""
    yield row(7, "requests ended", "ended", progress.ended, of_all)
    tokens = round(progress.streamed_tokens * progress.tokens_per_counted)
    if settings.streams:
        yield row(4, "output tokens", "tokens", tokens)


def _requested_rate(settings: RunSettings) -> str:
    unit = " sessions" if settings.timed_by_data else ""
    if settings.rate_profile is not None:
        pace = load_line.pace(settings)
        return f"asked {pace if unit else pace.removesuffix(' req/s') + '/s'}"
    if settings.ramp_up_strategy is not None:
        return f"asked {settings.ramp_up_start_rps:g} to {settings.ramp_up_end_rps:g}{unit}/s"
    return (
        f"asked {settings.request_rate:g}{unit}/s" if math.isfinite(settings.request_rate) else ""
    )


def _requests(progress: Progress, width: int) -> Iterator[Row]:
    cap = progress.cap
    age_s = progress.oldest_s
    notes = (
        [f"oldest {age_s:.1f} s" if age_s < 99.95 else f"oldest {clock_time(age_s)}"]
        if progress.in_flight
        else []
    )
    notes += [f"at most {cap}"] if cap else []
    if progress.waiting:
        notes.append(f"{progress.waiting} {'wait for a slot' if cap else 'late'}")
    yield _row(5, "in flight", [_count(progress.in_flight)], width, ", ".join(notes))
    if progress.failed:
        reasons = ", ".join(
            f"{name} {n}" for name, n in progress.failures.items() if is_failure(name)
        )
        if progress.never_due:
            reasons = f"{reasons}, never due {progress.never_due}".removeprefix(", ")
        yield _row(1, "failed", [_count(progress.failed)], width, reasons, style=BAD)
    for label, count in (
        ("users left", ended_by(progress.failures, Cause.USER)),
        ("cut off", progress.cut_off),
        ("never sent", progress.never_sent),
    ):
        if count:
            yield _row(1, label, [_count(count)], width)
    if progress.silent:
        yield _row(
            1,
            "silent streams",
            [_count(len(progress.silent))],
            width,
            longest_silence(progress),
            style=BAD,
        )


def _latencies(settings: RunSettings, progress: Progress, width: int) -> Iterator[Row]:
    gaps = (
        ("ITL (tokens)", progress.itl) if progress.imputed_gaps else ("ICL (chunks)", progress.icl)
    )
    since = " from sent" if settings.latency_from == "sent" else ""
    yield _row(6, "latency (ms)", ["p50", "p90", "p99", "count"], width, style=FAINT)
    rows = [(6, f"TTFT{since}", progress.ttft), (8, *gaps), (9, f"E2EL{since}", progress.e2el)]
    rows = rows if settings.streams else rows[2:]
    for rank, label, sketch in [*rows, (11, "sent late by", progress.lag)]:
        cells = [*map(_ms, (sketch.p50_ms, sketch.p90_ms, sketch.p99_ms)), _count(sketch.count)]
        yield _row(rank, label, cells, width)


def _slo(limits: Sequence[LimitSoFar], width: int) -> Iterator[Row]:
    if limits:
        yield _row(6, "SLO", ["so far", "limit"], width, style=FAINT)
    for so_far in limits:
        limit, state, style = so_far.limit, str(so_far.state), STATES[so_far.state]
        if so_far.state is State.TOO_FEW:
            met = "met" if so_far.is_within else "beyond"
            state = "not known yet" if so_far.value is None else f"{met} so far, {so_far.when_sure}"
        if so_far.value == math.inf:
            value = "failed"
        elif limit.metric == "error":
            value = percent(so_far.value, 2)
        elif so_far.value is None:
            value = "n/a"
        else:
            value = _ms(so_far.value, " ms")
            value = f"~{value}" if so_far.state is State.CLOSE else value
        cells = [value, limit.text.strip().removeprefix(limit.name)]
        line = _row(
            2, limit.name, cells, width, style=BAD if so_far.state is State.MISSED else PLAIN
        ).line
        room = width - sum(len(text) for text, _ in line) - len(GAP)
        yield Row(2, [*line, (GAP + truncate(state, room), style)] if room >= MIN_NOTE else line)


def _charts(settings: RunSettings, history: History, room: int, ascii_only: bool) -> Iterator[Row]:
    """Draw in-flight requests and, where there are tokens, the median TTFT over time, as high as
    the room allows.
    """
    over_time, height = history.over_time, min(max((room - 1) // 2, 1), MAX_CHART_HEIGHT)
    yield Row(BLANK, [])
    charts: list[tuple[str, Sequence[float | None], Callable[[float], str]]] = [
        ("in flight", over_time.in_flight, _count)
    ]
    if settings.streams:
        charts.append(("TTFT over time", over_time.ttft_p50_ms, latency))
    for label, values, form in charts:
        peak_value = max((value for value in values if value is not None), default=None)
        lines = bars(values, height, ascii_only=ascii_only)
        for number, line in enumerate(lines):
            peak = f"{GAP}peak {form(peak_value)}" if peak_value is not None and not number else ""
            yield Row(
                10, [(f"{'' if number else label:<{LABEL}}", FAINT), (line, FULL), (peak, FAINT)]
            )


def _client_and_server(progress: Progress, width: int) -> Iterator[Row]:
    yield _row(2, "client", [f"{percent(progress.busy_share)} busy"], width)
    cells = [
        f"{title} {progress.server[name]:>{size}{form}}"
        for name, title, size, form in (
            ("running", "running", 6, ",.0f"),
            ("waiting", "waiting", 6, ",.0f"),
            ("kv_usage", "KV cache", 4, ".0%"),
        )
        if name in progress.server
    ]
    if cells:
        yield _row(10, "server", cells, width, cell_width=FIELD)


def _row(
    rank: int,
    label: str,
    cells: Sequence[str],
    width: int,
    note: str = "",
    style: str = PLAIN,
    *,
    cell_width: int = CELL,
) -> Row:
    """Lay out a label, the cells that fit and, if all fit, as much of the note as fits."""
    shown = cells[: max(0, width - LABEL) // cell_width]
    line = [
        (f"{label:<{LABEL}}", FAINT),
        ("".join(f"{cell:>{cell_width}}" for cell in shown), style),
    ]
    room = width - LABEL - cell_width * len(cells) - len(GAP)
    if note and room >= MIN_NOTE:
        line.append((GAP + truncate(note, room), style))
    return Row(rank, line)


def _joined(parts: Sequence[Part], width: int) -> Iterator[Line]:
    line: Line = []
    for text, colour in parts:
        separator = SEPARATOR if line else ""
        if line and sum(len(piece) for piece, _ in line) + len(separator) + len(text) > width:
            yield line
            line, separator = [], ""
        line = [*line, (separator, FAINT), (text, COLOURS[colour])]
    yield line


def _bar(share: float, width: int, ascii_only: bool) -> Line:
    full = round(min(max(share, 0.0), 1.0) * max(width, 0))
    done, open_ = ("#", ".") if ascii_only else ("━", "━")
    return [(done * full, FULL), (open_ * (width - full), FAINT)]


def _text(line: Line, width: int) -> "Text":
    from rich.text import Text

    text = Text.assemble(*line, no_wrap=True)
    text.truncate(width, overflow="crop")
    return text


def _ms(value: float | None, unit: str = "") -> str:
    """Format milliseconds with three digits, which is the precision of a sketch; long times in
    seconds.
    """
    if value is None:
        return "n/a"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{unit}" if value < LONG_MS else f"{value / 1e3:.1f} s"


def _count(number: float) -> str:
    return f"{number}" if number < 10**9 else f"{number / 1e9:.3f}e9"

"""Claims: candidates never tried, gains where nothing changed, and losses that are not told."""

import re
from collections.abc import Iterator

from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import Number, change, plain
from loadgen.lab.audit.page import stages_of
from loadgen.lab.audit.published import Published, title
from loadgen.lab.audit.rules.gains import of_stages, printed_change
from loadgen.lab.audit.rules.streams import itl, tpot
from loadgen.lab.audit.study import PublishedStudy
from loadgen.lab.audit.table import Cell, Quantity

TAILS = ("mean_ttft_ms", "p99_ttft_ms", "p99_tpot_ms", "p99_e2el_ms")
MIN_TAIL_FACTOR = 1.5  # times: a tail of one run varies by less
Loss = tuple[str, str, str, Number]  # its name, before, after, and by how much it rose
UNAVAILABLE = re.compile(
    r"(?i)([a-z][\w.-]*)\s*\((?:not supported|unsupported|not available|failed|n/a)\b[^()\n]*\)"
)
LATENCIES = re.compile(
    r"`(?P<a>[^`]+)` Mean Latency = (?P<x>[\d.]+) ?s, `(?P<b>[^`]+)` Mean Latency = (?P<y>[\d.]+) "
    r"?s\. "
    r"`[^`]+` is faster by (?P<gap>\d+\.\d+) ?s"
    r"(?:[^\n]*?\bTPOT = [\d.]+ ms vs [\d.]+ ms, (?P<turn>reduced|increased) by [\d.]+ ms "
    r"\((?P<times>\d+\.\d+)x)?"
)
MIN_TIMES_OFF = 1.1  # times: two ways to take a mean may differ within it


def hidden(study: PublishedStudy) -> Findings:
    """A gain is printed, and beside it a loss that is larger is not."""
    yield from _of_summary(study)
    for row, base, cell in study.pairs():
        gained = next(
            ((quantity, gain) for quantity in cell.quantities if (gain := _gain(quantity))), None
        )
        if gained is None:
            continue
        quantity, gain = gained
        results = [arm.result for arm in study.compared(row, base, cell)]
        worst = _worst(_printed(results, base, cell), gain) or _worst(_of_blocks(results), gain)
        if worst is not None and quantity.change:
            name, before, after, ratio = worst
            why = (
                f"{row.name}: it went from {before} to {after} ms, and the page prints the gain "
                f"of {quantity.change.text}"
            )
            says = f"{title(name)} {after} ms"
            yield _lost(study, (cell.get(name) or quantity).at, says, why, ratio.value)


def _of_summary(study: PublishedStudy) -> Findings:
    """The same of the rows of a summary without a baseline."""
    for row in study.summary.rows if study.summary.baseline is None and not study.repeated else ():
        printed = printed_change(row)
        pair = of_stages(study, row)
        if printed is None or pair is None or printed.ratio.value <= 1:
            continue
        best, incumbent = pair
        worst = _worst(
            _of_blocks([incumbent.result, best.result], ("mean_tpot_ms", *TAILS)), printed.ratio
        )
        if worst is not None:
            name, before, after, ratio = worst
            why = (
                f"{row.name}: it went from {before} to {after} ms, and the page prints the gain "
                f"of {printed.text} over {incumbent.name}"
            )
            says = f"{title(name)} {after} ms"
            yield _lost(study, printed.at, says, why, ratio.value)


def _lost(study: PublishedStudy, at: int, says: str, why: str, ratio: float) -> Finding:
    return study.note(at, "hidden-loss", says, why, "losses", ratio, change(ratio))


def _gain(quantity: Quantity) -> Number | None:
    """By how much a quantity got better, as its change says; None where it did not."""
    if quantity.change is None:
        return None
    ratio = quantity.change.ratio
    if quantity.is_latency and not quantity.change.is_speedup:
        ratio = Number.exact(1) / ratio or ratio
    return ratio if ratio.value > 1 else None


def _worst(losses: Iterator[Loss], gained: Number) -> Loss | None:
    return max(
        (loss for loss in losses if loss[3].above(gained)),
        key=lambda loss: loss[3].value,
        default=None,
    )


def _printed(results: list[Published], base: Cell, cell: Cell) -> Iterator[Loss]:
    """Latencies printed without a change: name, before, after, and the ratio."""
    for quantity in cell.quantities:
        before = base.get(quantity.name)
        is_told = quantity.change is not None or not quantity.name.endswith("_ms")
        if not is_told and before and not any(map(is_misnamed, results)):
            yield quantity.name, before.text, quantity.text, quantity.number / before.number


def _of_blocks(results: list[Published], names: tuple[str, ...] = TAILS) -> Iterator[Loss]:
    """Tails of the blocks that the cells are of, which rose by much: the same."""
    for name in names if len(results) == 2 else ():
        before, after = (result[name] for result in results)
        ratio = after / before
        least = MIN_TAIL_FACTOR if name in TAILS else 1
        if ratio.above(least) and ("tpot" not in name or not any(map(is_misnamed, results))):
            yield name, str(before), str(after), ratio


def is_misnamed(result: Published) -> bool:
    """Whether TPOT of a result is another time than its name says."""
    wrong = [*tpot(result), *itl(result)]
    return any(finding.rule in ("tpot", "itl", "itl-zero") for finding in wrong)


def untried(study: PublishedStudy) -> Findings:
    """What is said not to work, or to bring nothing, was tried: there is a command or a result."""
    page = study.page
    within = [*(item.at for item in page.commands), *(item.at for item in page.results)]
    for statement in UNAVAILABLE.finditer(page.prose):
        section = page.section(statement.start())
        shown = [item.engine for item in page.commands if item.at in section]
        if statement[1] in TABLES and statement[1] not in shown:
            why = "its section shows no command of it"
            yield study.note(
                statement.start(), "untried", statement[0], why, f"untried {statement[1]}"
            )
    for row in study.summary.rows:
        stages = stages_of(row, study.stages)
        if stages and not any(at in stage for stage in stages for at in within):
            why = f"{stages[0].title} has neither a command nor a result"
            says = f"{row.name}: {row.cells[0].text}" if row.cells else row.name
            yield study.note(row.at, "untried", says, why)


def ties(study: PublishedStudy) -> Findings:
    """What is called faster is faster by more than nothing, and than itself."""
    for line in LATENCIES.finditer(study.page.prose):
        if not float(line["gap"]):
            why = f"{line['a']} has {line['x']} s and {line['b']} {line['y']} s: a tie"
            yield study.note(line.start("gap"), "tie", f"faster by {line['gap']} s", why)
    for row in study.summary.rows:
        printed = printed_change(row)
        pair = of_stages(study, row)
        if printed is not None and printed.is_speedup and printed.ratio.value == 1:
            is_own = pair is not None and pair[0].result.same_run(pair[1].result)
            why = (
                f"{row.name}: both cells are of {pair[0].name}"
                if pair and is_own
                else f"{row.name}: a tie"
            )
            yield study.note(printed.at, "tie", f"{printed.text} faster", why)


def decoding(study: PublishedStudy) -> Findings:
    """ "TPOT is n times faster" is of TPOT that is the time between tokens, as E2EL has it."""
    for line in LATENCIES.finditer(study.page.prose):
        arms = {arm.label: arm for arm in study.tried if line.start() in arm.stage}
        pair = [arms[name].result for name in (line["a"], line["b"]) if name in arms]
        times = [result.decode_ms() for result in pair]
        ratio = (times[1] / times[0]).value if len(pair) == 2 else 0
        if line["turn"] is None or not ratio > 0 or not any(map(is_misnamed, pair)):
            continue
        printed = float(line["times"])
        speed_up = printed if line["turn"] == "reduced" else 1 / printed
        if max(speed_up / ratio, ratio / speed_up) > MIN_TIMES_OFF:
            why = f"(E2EL - TTFT) / (tokens - 1) is {times[0]} ms for {line['a']}, "
            why += f"{times[1]} for {line['b']}: the printed TPOT is no time between tokens"
            says = f"TPOT {line['turn']}, {line['times']}x"
            weight = max(speed_up, 1 / speed_up)
            should_be = f"{plain(ratio)}x faster" if ratio >= 1 else f"{plain(1 / ratio)}x slower"
            yield study.finding(
                line.start("times"), "summary-line", says, should_be, why, "decoding", weight
            )

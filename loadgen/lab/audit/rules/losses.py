"""Losses: latencies that got worse beside a gain that is printed, and that the page does not tell."""

from collections.abc import Iterator

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import Number, change
from loadgen.lab.audit.published import Published, title
from loadgen.lab.audit.rules.gains import of_stages, printed_change
from loadgen.lab.audit.rules.streams import itl, tpot
from loadgen.lab.audit.study import PublishedStudy
from loadgen.lab.audit.table import Cell, Quantity

TAILS = ("mean_ttft_ms", "p99_ttft_ms", "p99_tpot_ms", "p99_e2el_ms")
MIN_TAIL_FACTOR = 1.5  # times: a tail of one run varies by less


def hidden(study: PublishedStudy) -> Findings:
    """A gain is printed, and beside it a loss that is larger is not."""
    yield from _of_summary(study)
    for row, base, cell in study.pairs():
        gained = next(((quantity, gain) for quantity in cell.quantities if (gain := _gain(quantity))), None)
        if gained is None:
            continue
        quantity, gain = gained
        results = [arm.result for arm in study.compared(row, base, cell)]
        worst = _worst(_printed(results, base, cell), gain) or _worst(_of_blocks(results), gain)
        if worst is not None and quantity.change:
            name, before, after, ratio = worst
            why = f"{row.name}: beside {quantity.change.text} it went from {before} to {after} ms"
            says = f"{title(name)} {after} ms without its change"
            place = study.page.place((cell.get(name) or quantity).at)
            yield Finding(place, "hidden-loss", says, change(ratio.value), why, True, "losses", ratio.value)


def _of_summary(study: PublishedStudy) -> Findings:
    """The same of a summary without a baseline, whose rows print what a stage gained over the best before it."""
    for row in study.summary.rows if study.summary.baseline is None and not study.repeated else ():
        printed, pair = printed_change(row), of_stages(study, row)
        if printed is None or pair is None or printed.ratio.value <= 1:
            continue
        best, incumbent = pair
        worst = _worst(_of_blocks([incumbent.result, best.result], ("mean_tpot_ms", *TAILS)), printed.ratio)
        if worst is not None:
            name, before, after, ratio = worst
            why = f"{row.name}: beside {printed.text} it went from {before} ({incumbent.name}) to {after} ms"
            says, place = f"{title(name)} {after} ms is not told", study.page.place(printed.at)
            yield Finding(place, "hidden-loss", says, change(ratio.value), why, True, "losses", ratio.value)


Loss = tuple[str, str, str, Number]  # its name, before, after, and by how much it rose


def _gain(quantity: Quantity) -> Number | None:
    """By how much a quantity got better, as its change says; None where it did not, or nothing is said."""
    if quantity.change is None:
        return None
    ratio = quantity.change.ratio
    if quantity.is_latency and not quantity.change.is_speedup:
        ratio = Number.exact(1) / ratio or ratio
    return ratio if ratio.value > 1 else None


def _worst(losses: Iterator[Loss], gained: Number) -> Loss | None:
    return max((loss for loss in losses if loss[3].above(gained)), key=lambda loss: loss[3].value, default=None)


def _printed(results: list[Published], base: Cell, cell: Cell) -> Iterator[Loss]:
    """Latencies that are printed without a change: name, before, after, and by how much they rose."""
    for quantity in cell.quantities:
        before = base.get(quantity.name)
        is_told = quantity.change is not None or not quantity.name.endswith("_ms")
        if not is_told and before and not any(map(is_misnamed, results)):
            yield quantity.name, before.text, quantity.text, quantity.number / before.number


def _of_blocks(results: list[Published], names: tuple[str, ...] = TAILS) -> Iterator[Loss]:
    """Tails of the blocks that the cells are of, which rose by much: the same."""
    for name in names if len(results) == 2 else ():
        before, after = (result[name] for result in results)
        ratio, least = after / before, MIN_TAIL_FACTOR if name in TAILS else 1
        if ratio.above(least) and ("tpot" not in name or not any(map(is_misnamed, results))):
            yield name, str(before), str(after), ratio


def is_misnamed(result: Published) -> bool:
    """Whether TPOT of a result is another time than its name says."""
    wrong = [*tpot(result), *itl(result)]
    return any(finding.rule in ("tpot", "itl", "itl-zero") for finding in wrong)

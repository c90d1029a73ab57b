"""Losses: latencies that got worse beside a gain that is printed, and that the page does not tell."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, change
from loadgen.analysis.audit.published import Published, title
from loadgen.analysis.audit.rules.streams import itl, tpot
from loadgen.analysis.audit.study import Study
from loadgen.analysis.audit.table import Cell, Change

TAILS = ("mean_ttft_ms", "p99_ttft_ms", "p99_tpot_ms")
FAR = 1.5  # times: a tail of one run varies by less


def hidden(study: Study) -> Iterator[Finding]:
    """A gain is printed as a percentage, and beside it a loss that is larger is not."""
    if study.of_latency:
        return  # what it is about is what is printed
    for table in study.page.tables:
        for row, base, cell, _ in table.pairs():
            gained = next((q for q in cell.quantities if q.change and q.change.ratio.value > 1), None)
            if gained is None or gained.change is None:
                continue
            worst = _worst(_printed(study, base, cell), gained.change) or _worst(
                _of_blocks(study, base, cell), gained.change
            )
            if worst is not None:
                name, before, after, ratio = worst
                cells = {quantity.name: quantity.at for quantity in cell.quantities}
                why = f"{row.name}: beside {gained.change.text} it went from {before} to {after} ms"
                says = f"{title(name)} {after} ms without its change"
                place = study.page.place(cells.get(name, gained.at))
                yield Finding(place, "hidden-loss", says, change(ratio.value), why, True, "losses", ratio.value)


Loss = tuple[str, str, str, Number]  # its name, before, after, and by how much it rose


def _worst(losses: Iterator[Loss], gained: Change) -> Loss | None:
    return max((loss for loss in losses if loss[3].above(gained.ratio)), key=lambda loss: loss[3].value, default=None)


def _printed(study: Study, base: Cell, cell: Cell) -> Iterator[Loss]:
    """Latencies that are printed without a change: name, before, after, and by how much they rose."""
    results = _results(study, base, cell)
    for quantity in cell.quantities:
        before = base.get(quantity.name)
        is_latency = quantity.name.endswith("_ms") and quantity.change is None
        if is_latency and before and before.number.low > 0 and not any(map(is_misnamed, results)):
            yield quantity.name, before.text, quantity.text, quantity.number / before.number


def _of_blocks(study: Study, base: Cell, cell: Cell) -> Iterator[Loss]:
    """Tails of the blocks that the cells are of, which rose by much: the same."""
    results = _results(study, base, cell)
    if len(results) < 2:
        return
    for name in TAILS:
        before, after = results[0].get(name), results[1].get(name)
        if before is None or after is None or before.low <= 0 or not after.above(before * FAR):
            continue
        if "tpot" not in name or not any(map(is_misnamed, results)):
            yield name, str(before), str(after), after / before


def _results(study: Study, base: Cell, cell: Cell) -> list[Published]:
    """The results that two cells show, in this order; none where one of them is unknown."""
    arms = [study.showing(each.get("total_per_s")) for each in (base, cell)]
    return [found[0].result for found in arms] if all(arms) else []


def is_misnamed(result: Published) -> bool:
    """Whether TPOT of a result is another time than its name says."""
    wrong = [*tpot(result), *itl(result)]
    return any(finding.rule in ("tpot", "itl", "itl-zero") for finding in wrong)

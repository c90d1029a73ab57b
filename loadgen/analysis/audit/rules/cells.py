"""Cells: what tables print, against the blocks of their page and against their own other cells."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, change, plain
from loadgen.analysis.audit.published import Published, title
from loadgen.analysis.audit.study import Study
from loadgen.analysis.audit.table import Cell, Change, Quantity


def copied(study: Study) -> Iterator[Finding]:
    """What stands beside a throughput is of the same block, and to the same digits."""
    if not study.arms:
        return
    for table in study.page.tables:
        for row in table.rows:
            for cell in row.cells:
                total = cell.get("total_per_s")
                if total is None:
                    continue
                arms = study.showing(total)
                if not arms:
                    why = f"no block on this page has it; it is in the row {row.name}"
                    yield _finding(study, total.at, "cell", f"total {total.text} tok/s", "", why, note=True)
                    continue
                for quantity in cell.quantities:
                    yield from _beside(study, quantity, [arm.result for arm in arms])


def _beside(study: Study, quantity: Quantity, results: list[Published]) -> Iterator[Finding]:
    known = [result for result in results if quantity.name in result.numbers]
    numbers = [result.numbers[quantity.name] for result in known]
    if not known or any(number.value == quantity.number.value for number in numbers):
        return
    says, block = f"{title(quantity.name)} {quantity.text}", known[0].where(quantity.name)
    if any(number.agrees(quantity.number) for number in numbers):
        why = f"the block at line {block.line} prints {numbers[0]}: digits were lost"
        yield _finding(study, quantity.at, "cell", says, str(numbers[0]), why, note=True)
    else:
        why = f"the block with this throughput, at line {block.line}, prints {numbers[0]}"
        yield _finding(study, quantity.at, "cell", says, str(numbers[0]), why)


def percents(study: Study) -> Iterator[Finding]:
    """A change is the cell by the baseline's, less 1; and where a rate was wrong, that of tokens by duration."""
    for table in study.page.tables:
        for row, base, cell, _ in table.pairs():
            for quantity in cell.quantities:
                before = base.get(quantity.name)
                if quantity.change is None or before is None or before.whole.low <= 0:
                    continue
                asked = study, quantity, before, quantity.change, row.name
                if found := _wrong(*asked) or _of_tokens(*asked):
                    yield found


def _wrong(study: Study, after: Quantity, before: Quantity, printed: Change, row: str) -> Finding | None:
    ratio = after.whole / before.whole
    if printed.ratio.agrees(ratio):
        return None
    why = f"{row}: {_said(after)} / {_said(before)} - 1 = {change(ratio.value)}"
    inverse = before.whole / after.whole
    if abs(2 - printed.ratio.value - inverse.value) <= printed.ratio.high - printed.ratio.value:
        why += f"; {printed.text} is the inverse ratio, {_said(before)} / {_said(after)} - 1, with another sign"
    return _finding(study, printed.at, "percent", printed.text, change(ratio.value), why)


def _of_tokens(study: Study, after: Quantity, before: Quantity, printed: Change, row: str) -> Finding | None:
    """The same from tokens and durations, where both cells are total throughput and both blocks are on the page."""
    arms = study.showing(after), study.showing(before)
    if after.name != "total_per_s" or not all(arms):
        return None
    rates = [found[0].result.tokens_per_second() for found in arms]
    if rates[0] is None or rates[1] is None or rates[1].low <= 0:
        return None
    ratio = rates[0] * after.times / (rates[1] * before.times)
    if printed.ratio.agrees(ratio):
        return None
    why = (
        f"{row}: tokens / duration are {rates[0]} and {rates[1]} tok/s, {_ratio(arms[0][0].result, arms[1][0].result)}"
    )
    return _finding(study, printed.at, "percent-of-rates", printed.text, change(ratio.value), why)


def _ratio(after: Published, before: Published) -> str:
    numbers = [result.all("input_tokens", "output_tokens", "duration_s") for result in (after, before)]
    return " against ".join(f"({n[0]} + {n[1]}) / {n[2]} s" for n in numbers if n is not None)


def hidden(study: Study) -> Iterator[Finding]:
    """A gain is printed as a percentage, and beside it a loss that is larger is not."""
    for table in study.page.tables:
        for row, base, cell, _ in table.pairs():
            gained = next((q for q in cell.quantities if q.change and q.change.ratio.value > 1), None)
            if gained is None or gained.change is None:
                continue
            for lost, ratio in _worse(base, cell):
                if ratio.above(gained.change.ratio):
                    why = f"{row.name}: beside {gained.change.text} it went from {_of(base, lost)} to {lost.text} ms"
                    says = f"{title(lost.name)} {lost.text} ms without its change"
                    yield _finding(study, lost.at, "hidden-loss", says, change(ratio.value), why, note=True)


def _worse(base: Cell, cell: Cell) -> Iterator[tuple[Quantity, Number]]:
    """Latencies that are printed without a change, and by how much they rose."""
    for quantity in cell.quantities:
        before = base.get(quantity.name)
        if quantity.name.endswith("_ms") and quantity.change is None and before and before.number.low > 0:
            yield quantity, quantity.number / before.number


def success_rates(study: Study) -> Iterator[Finding]:
    """A success rate is that of its block, of as many as the other arms had."""
    groups = study.by_workload()
    for table in study.page.tables:
        for row in table.rows:
            for cell in row.cells:
                printed, arms = cell.get("success_rate"), study.showing(cell.get("total_per_s"))
                counts = [arm.result.get("ok") for arm in groups[arms[0].workload]] if arms else []
                ok, asked = arms[0].result.get("ok") if arms else None, max((c.value for c in counts if c), default=0)
                if printed is None or ok is None or not asked:
                    continue
                share = Number.exact(100 * ok.value / asked)
                if not printed.number.agrees(share):
                    why = f"{row.name}: {ok} / {plain(asked)} = {share} %"
                    yield _finding(study, printed.at, "success-rate", f"{printed.text} %", f"{share} %", why)


def _of(cell: Cell, like: Quantity) -> str:
    found = cell.get(like.name)
    return found.text if found else "n/a"


def _said(quantity: Quantity) -> str:
    return quantity.text if quantity.times == 1 else f"{quantity.text} x {quantity.times}"


def _finding(study: Study, at: int, rule: str, says: str, should_be: str, why: str, *, note: bool = False) -> Finding:
    return Finding(study.page.place(at), rule, says, should_be, why, note)

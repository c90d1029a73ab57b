"""Cells: what tables print, against the blocks of their page and against their own other cells."""

from collections.abc import Iterator

from loadgen.analysis.audit.files import RATE_ERROR
from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, change, off, plain
from loadgen.analysis.audit.published import Published, title
from loadgen.analysis.audit.study import PublishedStudy
from loadgen.analysis.audit.table import Change, Quantity, Row, Table


def copied(study: PublishedStudy) -> Iterator[Finding]:
    """What stands beside a throughput is of the same block, and to the same digits."""
    if not study.arms or study.repeated:
        return
    for table in study.page.tables:
        for row in table.rows:
            for cell in row.cells:
                total, arms = cell.get("total_per_s"), study.shown(cell)
                if total is not None and not arms:
                    yield _without_block(study, table, row, total)
                    continue
                for quantity in cell.quantities:
                    yield from _beside(study, quantity, [arm.result for arm in arms])


def _without_block(study: PublishedStudy, table: Table, row: Row, total: Quantity) -> Finding:
    """A throughput that no block has; a contradiction where the block that it should be of is known."""
    says, why = f"total {total.text} tok/s", f"no block on this page has it; it is in the row {row.name}"
    base = row.cells[table.baseline] if table is study.comparison and table.baseline is not None else None
    others = [arm for cell in row.cells if cell is not base for arm in study.showing(cell.get("total_per_s"))]
    first = next(iter(study.tried), None)
    is_baselines = base is not None and base.get("total_per_s") is total and any(arm.stage for arm in others)
    if not is_baselines or first is None or first.total is None:
        return _finding(study, total.at, "cell", says, "", why, note=True)
    line = first.result.where("total_per_s").line
    why += f"; the baseline's block, at line {line}, has {first.total}"
    gained = [cell.quantities[0].change for cell in row.cells if cell.quantities and cell.quantities[0].change]
    after = others[0].total
    if gained and gained[0] and after and first.total.low > 0 and not gained[0].ratio.agrees(after / first.total):
        why += f", so that {gained[0].text} is {change(after.value / first.total.value)}"
    return _finding(study, total.at, "cell", says, str(first.total), why)


def _beside(study: PublishedStudy, quantity: Quantity, results: list[Published]) -> Iterator[Finding]:
    known = [result for result in results if quantity.name in result.numbers]
    if quantity.name == "total_per_s" and not any(r.numbers[quantity.name].agrees(quantity.number) for r in known):
        return  # an estimate of several servers
    numbers = [result.numbers[quantity.name] for result in known]
    if not known or any(number.value == quantity.number.value for number in numbers):
        return
    says, block = f"{title(quantity.name)} {quantity.text}", known[0].where(quantity.name)
    if any(number.agrees(quantity.number) for number in numbers):
        why = f"the block at line {block.line} prints {numbers[0]}: digits were lost"
        yield _finding(study, quantity.at, "cell", says, str(numbers[0]), why, note=True)
    else:
        why = f"the block of this cell, at line {block.line}, prints {numbers[0]}"
        yield _finding(study, quantity.at, "cell", says, str(numbers[0]), why)


def percents(study: PublishedStudy) -> Iterator[Finding]:
    """A change is the cell by the baseline's, less 1; and where a rate was wrong, that of tokens by duration."""
    if study.repeated:
        return
    for row, base, cell in study.pairs():
        for quantity in cell.quantities:
            before = base.get(quantity.name)
            if quantity.change is None or before is None or before.whole.low <= 0 or quantity.whole.low <= 0:
                continue
            asked = study, quantity, before, quantity.change, row.name
            if found := _wrong(*asked) or _of_tokens(*asked):
                yield found


def _wrong(study: PublishedStudy, after: Quantity, before: Quantity, printed: Change, row: str) -> Finding | None:
    is_latency = after.is_latency
    ratio = before.whole / after.whole if printed.is_speedup and is_latency else after.whole / before.whole
    said = f"{_said(after)} / {_said(before)}"
    if printed.per_device:
        widths = [arms[0].width for arms in (study.showing(after), study.showing(before)) if arms]
        if len(widths) < 2:
            return None
        ratio = ratio * Number.exact(widths[1] / widths[0])
        said = f"({_said(after)} / {widths[0]}) / ({_said(before)} / {widths[1]})"
    if printed.ratio.agrees(ratio):
        return None
    if printed.is_speedup:
        said = f"{_said(before)} / {_said(after)}" if is_latency else said
        why, should_be = f"{row}: {said} = {plain(ratio.value)}", f"{plain(ratio.value)}x"
    else:
        why, should_be = f"{row}: {said} - 1 = {change(ratio.value)}", change(ratio.value)
    inverse = before.whole / after.whole
    if abs(2 - printed.ratio.value - inverse.value) <= printed.ratio.high - printed.ratio.value:
        why += f"; {printed.text} is the inverse ratio, {_said(before)} / {_said(after)} - 1, with another sign"
    return _finding(study, printed.at, "percent", printed.text, should_be, why, weight=off(printed.ratio, ratio))


def _of_tokens(study: PublishedStudy, after: Quantity, before: Quantity, printed: Change, row: str) -> Finding | None:
    """The same from tokens and durations, where both cells are total throughput and both blocks are on the page."""
    arms = study.showing(after), study.showing(before)
    if after.name != "total_per_s" or not all(arms) or printed.per_device or printed.is_speedup:
        return None
    results = arms[0][0].result, arms[1][0].result
    rates = [rate for result in results if (rate := result.tokens_per_second())]
    if len(rates) < 2 or rates[1].low <= 0:
        return None
    printed_rates = [result.get("total_per_s") for result in results]
    if all(said is not None and said.agrees(rate) for said, rate in zip(printed_rates, rates, strict=True)):
        return None  # what is left is the rounding of the cells
    ratio = rates[0] * after.times / (rates[1] * before.times)
    is_loss = printed.ratio.value <= 1 and ratio.value <= 1  # which nobody prints to look better
    allowed = 2 * RATE_ERROR if is_loss and all(result.over_guidellm for result in results) else 0
    if printed.ratio.agrees(ratio) or off(printed.ratio, ratio) <= allowed:
        return None
    why = f"{row}: tokens / duration are {rates[0]} and {rates[1]} tok/s, {_ratio(*results)}"
    says, should_be, weight = printed.text, change(ratio.value), off(printed.ratio, ratio)
    return _finding(study, printed.at, "percent-of-rates", says, should_be, why, cause="rates", weight=weight)


def _ratio(after: Published, before: Published) -> str:
    numbers = [result.all("input_tokens", "output_tokens", "duration_s") for result in (after, before)]
    return " against ".join(f"({n[0]} + {n[1]}) / {n[2]} s" for n in numbers if n is not None)


def success_rates(study: PublishedStudy) -> Iterator[Finding]:
    """A success rate is that of its block, of as many as were sent or the other arms had."""
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


def _said(quantity: Quantity) -> str:
    return quantity.text if quantity.times == 1 else f"{quantity.text} x {quantity.times}"


def _finding(
    study: PublishedStudy,
    at: int,
    rule: str,
    says: str,
    should_be: str,
    why: str,
    *,
    note: bool = False,
    cause: str = "",
    weight: float = 0.0,
) -> Finding:
    return Finding(study.page.place(at), rule, says, should_be, why, note, cause, weight)

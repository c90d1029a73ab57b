"""Cells: what tables print, against the blocks of their page and against their own other cells."""

from itertools import chain

from loadgen.lab.audit.files import RATE_ERROR
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import Number, change, off, plain
from loadgen.lab.audit.published import title
from loadgen.lab.audit.study import PublishedArm, PublishedStudy
from loadgen.lab.audit.table import Change, Quantity, Row, Table

MIN_CHANGES = 2  # in a column, of which one must be right for another that is wrong
MAX_CLIENT_SHARE = 0.03  # relative: what a client needs between two requests


def copied(study: PublishedStudy) -> Findings:
    """What stands beside a throughput is of the same block, and to the same digits."""
    if not study.arms:
        return
    for table, row, cell in study.table_cells():
        total = cell.get("total_per_s")
        arms = study.shown(cell)
        if total is not None and not arms and study.compares:
            yield _without_block(study, table, row, total)
            continue
        for quantity in cell.quantities:
            printing = [arm.result for arm in arms if quantity.name in arm.result.numbers]
            numbers = [result[quantity.name] for result in printing]
            if not printing or any(number.value == quantity.number.value for number in numbers):
                continue
            says = f"{title(quantity.name)} {quantity.text}"
            should_be = str(numbers[0])
            line = printing[0].where(quantity.name).line
            if any(number.agrees(quantity.number) for number in numbers):
                why = f"the block at line {line} prints {should_be}: digits were lost"
                place = study.page.place(quantity.at)
                yield Finding(place, "cell", says, should_be, why, note=True)
            elif quantity.name != "total_per_s":  # else it is an estimate of several servers
                why = f"the block of this cell, at line {line}, prints {should_be}"
                yield study.finding(quantity.at, "cell", says, should_be, why)


def _without_block(study: PublishedStudy, table: Table, row: Row, total: Quantity) -> Finding:
    """A throughput of no block; a contradiction where its block is known."""
    says = f"total {total.text} tok/s"
    why = f"no block on this page has it; it is in the row {row.name}"
    base = (
        row.cells[table.baseline]
        if table is study.comparison and table.baseline is not None
        else None
    )
    cells = [cell for cell in row.cells if cell is not base]
    measured = list(chain.from_iterable(study.showing(cell.get("total_per_s")) for cell in cells))
    is_baselines = (
        base is not None and base.get("total_per_s") is total and any(arm.stage for arm in measured)
    )
    if not is_baselines or not study.tried or not study.tried[0].total:
        return study.note(total.at, "cell", says, why)
    first = study.tried[0]
    line = first.result.where("total_per_s").line
    why += f"; the baseline's block, at line {line}, has {first.total}"
    firsts = [cell.quantities[0] for cell in row.cells if cell.quantities]
    gained = next((quantity.change for quantity in firsts if quantity.change), None)
    ratio = measured[0].total / first.total
    if gained and gained.ratio.differs(ratio):
        why += f", so that {gained.text} is {change(ratio.value)}"
    return study.finding(total.at, "cell", says, str(first.total), why)


def percents(study: PublishedStudy) -> Findings:
    """A change is the cell by the baseline's, less 1; of rates, that of tokens by duration."""
    for row, base, cell in study.pairs():
        for quantity in cell.quantities:
            before = base.get(quantity.name)
            if quantity.change is not None and before is not None:
                printed = quantity.change
                finding = _wrong(study, quantity, before, printed, row.name)
                finding = finding or _of_tokens(study, quantity, before, printed, row.name)
                if finding:
                    yield finding


def of_rows(study: PublishedStudy) -> Findings:
    """A change in a column without a baseline is of its number and that of another row."""
    for table in study.page.tables:
        if table.baseline is not None:
            continue
        for column in zip(*(row.cells for row in table.rows), strict=False):
            numbers = [cell.quantities[0] if cell.quantities else None for cell in column]
            first = numbers[0]
            pairs = [(n, n.change) for n in numbers[1:] if n and n.change and n.number]
            if first is None or first.change is not None or len(pairs) < MIN_CHANGES:
                continue
            others = [number for number in numbers if number]
            right = [pair for pair in pairs if _is_change(*pair, first)]
            wrong = [
                (number, printed)
                for number, printed in pairs
                if not any(_is_change(number, printed, other) for other in others)
            ]
            for number, printed in wrong if len(wrong) <= len(right) else ():
                ratio = number.number / first.number
                should_be = change(ratio.value)
                why = f"{number.text} / {first.text} - 1 = {should_be}, and no other row fits"
                yield study.finding(printed.at, "percent", printed.text, should_be, why)


def _is_change(after: Quantity, printed: Change, before: Quantity) -> bool:
    """Whether a change is that of two numbers, in whichever way authors write one."""
    ratio = after.number / before.number
    inverse = before.number / after.number
    readings = (ratio, inverse, Number.exact(2) - ratio, Number.exact(2) - inverse)
    return not ratio or any(printed.ratio.agrees(reading) for reading in readings)


def _wrong(
    study: PublishedStudy, after: Quantity, before: Quantity, printed: Change, row: str
) -> Finding | None:
    is_latency = after.is_latency
    ratio = (
        before.whole / after.whole
        if printed.is_speedup and is_latency
        else after.whole / before.whole
    )
    quotient = f"{_said(after)} / {_said(before)}"
    if printed.per_device:
        widths = [arms[0].width for arms in (study.showing(after), study.showing(before)) if arms]
        if len(widths) < 2:
            return None
        ratio *= widths[1] / widths[0]
        quotient = f"({_said(after)} / {widths[0]}) / ({_said(before)} / {widths[1]})"
    if not printed.ratio.differs(ratio):
        return None
    if printed.is_speedup:
        quotient = f"{_said(before)} / {_said(after)}" if is_latency else quotient
        why = f"{row}: {quotient} = {plain(ratio.value)}"
        should_be = f"{plain(ratio.value)}x"
    else:
        why = f"{row}: {quotient} - 1 = {change(ratio.value)}"
        should_be = change(ratio.value)
    inverse = before.whole / after.whole
    if abs(2 - printed.ratio.value - inverse.value) <= printed.ratio.high - printed.ratio.value:
        why += (
            f"; {printed.text} is the inverse ratio, {_said(before)} / {_said(after)} - 1, "
            "with the sign reversed"
        )
    return study.finding(
        printed.at, "percent", printed.text, should_be, why, weight=off(printed.ratio, ratio)
    )


def _of_tokens(
    study: PublishedStudy, after: Quantity, before: Quantity, printed: Change, row: str
) -> Finding | None:
    """The same from tokens and durations, where both blocks are on the page."""
    arms = study.showing(after), study.showing(before)
    if after.name != "total_per_s" or not all(arms) or printed.per_device or printed.is_speedup:
        return None
    results = arms[0][0].result, arms[1][0].result
    rates = [result.tokens_per_second() for result in results]
    if all(result["total_per_s"].agrees(rate) for result, rate in zip(results, rates, strict=True)):
        return None  # what is left is the rounding of the cells
    ratio = rates[0] * after.times / (rates[1] * before.times)
    is_loss = printed.ratio.value <= 1 and ratio.value <= 1  # which nobody prints to look better
    allowed = 2 * RATE_ERROR if is_loss and all(result.over_guidellm for result in results) else 0
    if not printed.ratio.differs(ratio) or off(printed.ratio, ratio) <= allowed:
        return None
    sums = " against ".join(
        f"({r['input_tokens']} + {r['output_tokens']}) / {r['duration_s']} s" for r in results
    )
    why = f"{row}: tokens / duration are {rates[0]} and {rates[1]} tok/s, {sums}"
    says = printed.text
    should_be = change(ratio.value)
    weight = off(printed.ratio, ratio)
    return study.finding(printed.at, "percent-of-rates", says, should_be, why, "rates", weight)


def success_rates(study: PublishedStudy) -> Findings:
    """A success rate is that of its block, of as many as were sent or the other arms had."""
    groups = study.by_workload()
    for _, row, cell in study.table_cells():
        printed = cell.get("success_rate")
        arms = study.showing(cell.get("total_per_s"))
        if printed is None or not arms:
            continue
        ok = arms[0].result["ok"]
        requests = max(
            (count.value for arm in groups[arms[0].workload] if (count := arm.result["ok"])),
            default=0,
        )
        share = ok * 100 / requests
        if printed.number.differs(share):
            why = f"{row.name}: {ok} / {plain(requests)} = {share}%"
            yield study.finding(printed.at, "success-rate", f"{printed.text}%", f"{share}%", why)


def latencies(study: PublishedStudy) -> Findings:
    """N requests of a mean time, at most `cap` at once, fit into their run."""
    for row, base, cell, _ in study.comparison.pairs():
        before = base.get("latency_s")
        after = cell.get("latency_s")
        for quantity, arm in zip((before, after), study.compared(row, base, cell), strict=False):
            if quantity is not None:
                yield from _fits(study, row, quantity, before, arm)


def _fits(
    study: PublishedStudy, row: Row, quantity: Quantity, before: Quantity | None, arm: PublishedArm
) -> Findings:
    ok, cap, duration = (arm.result[name] for name in ("ok", "cap", "duration_s"))
    most = duration * cap / ok
    work = f"{row.name}: {ok} requests in {duration} s"
    line = arm.result.place.line
    should_be = f"{most} s"
    if quantity.number.above(most):
        why = f"{work}, {cap} at once, leave {most} s for each (line {line})"
        should_be = f"at most {should_be}"
    elif (
        cap.value == 1
        and not arm.result.over_guidellm
        and (most * (1 - MAX_CLIENT_SHARE)).above(quantity.number)
    ):
        why = f"{work}, one after the other, are {most} s for each (line {line})"
        if before is not None and quantity.change is not None and quantity.change.is_speedup:
            why += f"; {quantity.change.text} is {plain(before.number.value / most.value)}x"
    else:
        return
    says = f"mean latency {quantity.text} s"
    weight = off(quantity.number, most)
    yield study.finding(quantity.at, "latency-cell", says, should_be, why, weight=weight)


def _said(quantity: Quantity) -> str:
    return quantity.text if quantity.times == 1 else f"{quantity.text} x {quantity.times}"

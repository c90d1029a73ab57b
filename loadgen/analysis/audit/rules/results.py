"""Results: lines that say which arm was how fast, against the blocks of those arms."""

import difflib
import re
from collections.abc import Iterator
from itertools import pairwise

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, change, plain
from loadgen.analysis.audit.study import Arm, Study

LINE = re.compile(r"\bResult:([^\n]*)")
ENTRY = re.compile(r"([A-Za-z][^()>\n]*?)\s*\((\d[\d,]*(?:\.\d+)?)(?:\s?x\s?\d+)?\s*tok/s\)")
SUMMARY = re.compile(
    r"`(?P<a>[^`]+)` Total TPS = (?P<x>[\d.,]+), `(?P<b>[^`]+)` Total TPS = (?P<y>[\d.,]+)\. "
    r"`(?P<first>[^`]+)` is (?P<way>faster|slower) by (?P<gap>[\d.]+) tok/s \((?P<share>[\d.]+)%\)"
    r"(?:; Mean TPOT = (?P<tx>[\d.]+) ms vs (?P<ty>[\d.]+) ms, (?P<turn>reduced|increased) by "
    r"(?P<tgap>[\d.]+) ms \((?P<tshare>[\d.]+)%)?"
)
CLEARLY = 1.1  # times: two ways to take a mean may differ in sign within it


def lines(study: Study) -> Iterator[Finding]:
    """ "Result: A (x tok/s) > B (y tok/s)": each number is of a block, and each is above the next."""
    for line in LINE.finditer(study.page.prose):
        entries = list(ENTRY.finditer(study.page.prose, *line.span(1)))
        section = study.page.section(line.start())
        arms = [arm for arm in study.arms if section and section.begin <= arm.result.at < section.end]
        for entry in entries:
            yield from _entry(study, entry, arms)
        for left, right in pairwise(entries):
            is_greater = ">" in study.page.prose[left.end() : right.start()]
            if is_greater and Number.printed(right[2]).above(Number.printed(left[2])):
                why = f"{left[1].strip()} has {left[2]} and {right[1].strip()} {right[2]}"
                says = f"{left[1].strip()} > {right[1].strip()}"
                yield Finding(study.page.place(left.start()), "result-line", says, "", why)


def _entry(study: Study, entry: re.Match[str], arms: list[Arm]) -> Iterator[Finding]:
    printed = Number.printed(entry[2])
    totals = {arm.label: arm.total for arm in arms if arm.total is not None}
    if not totals or any(total.agrees(printed) for total in totals.values()):
        return
    near = difflib.get_close_matches(entry[1].strip(), totals, 1)
    should_be, why = "", f"no block of this section has {entry[2]}"
    if near:
        arm = next(arm for arm in arms if arm.label == near[0])
        block = arm.result.where("total_per_s")
        should_be, why = str(totals[near[0]]), f"the block of {near[0]} at line {block.line} has {totals[near[0]]}"
    says = f"{entry[1].strip()} {entry[2]}"
    yield Finding(study.page.place(entry.start()), "result-line", says, should_be, why, note=not near)


def summaries(study: Study) -> Iterator[Finding]:
    """ "A is faster by d tok/s (p %); Mean TPOT reduced by e ms (q %)": differences, shares, and whether it was."""
    for line in SUMMARY.finditer(study.page.prose):
        said = line.groupdict()
        x, y = Number.printed(said["x"]), Number.printed(said["y"])
        first, second = (x, y) if said["first"] == said["a"] else (y, x)
        gap, share = (first - second), (first / second - 1) * 100
        if said["way"] == "slower":
            gap, share = gap * -1, share * -1
        yield from _claim(study, line, "gap", gap, " tok/s")
        yield from _claim(study, line, "share", share, " %")
        if said["turn"] is None:
            continue
        tx, ty = Number.printed(said["tx"]), Number.printed(said["ty"])
        sign = 1 if said["turn"] == "reduced" else -1
        yield from _claim(study, line, "tgap", (ty - tx) * sign, " ms")
        yield from _claim(study, line, "tshare", (ty - tx) / ty * (100 * sign), " %")
        yield from _reversed(study, line, x, y)


def _claim(study: Study, line: re.Match[str], group: str, expected: Number, unit: str) -> Iterator[Finding]:
    if not Number.printed(line[group]).agrees(expected):
        why = f"{line['a']} has {line['x']} and {line['b']} {line['y']} tok/s"
        if group.startswith("t"):
            why = f"{line['a']} has {line['tx']} and {line['b']} {line['ty']} ms"
        place = study.page.place(line.start(group))
        yield Finding(place, "summary-line", f"{line[group]}{unit}", f"{expected}{unit}", why)


def _reversed(study: Study, line: re.Match[str], x: Number, y: Number) -> Iterator[Finding]:
    """Whether latencies tell of decoding what the line tells of TPOT."""
    decodes = [
        next((arm.result.decode_ms() for arm in study.arms if arm.total and arm.total.agrees(total)), None)
        for total in (x, y)
    ]
    if decodes[0] is None or decodes[1] is None or decodes[1].low <= 0:
        return
    ratio = decodes[0].value / decodes[1].value
    wrong = ratio > CLEARLY if line["turn"] == "reduced" else ratio < 1 / CLEARLY
    if wrong:
        why = (
            f"(E2EL - TTFT) / (tokens - 1) is {plain(decodes[0].value)} ms for {line['a']}, "
            f"{plain(decodes[1].value)} for {line['b']}: the opposite"
        )
        says = f"TPOT {line['turn']} by {line['tshare']} %"
        yield Finding(study.page.place(line.start("tgap")), "summary-line", says, change(ratio), why)

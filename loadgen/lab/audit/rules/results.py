"""Results: lines that say which arm was how fast, against the blocks of those arms."""

import difflib
import re
from collections.abc import Callable
from itertools import pairwise

from loadgen.lab.audit.files import RATE_ERROR
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import UNKNOWN, Number, change, off
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import PublishedArm, PublishedStudy

# Names with a number behind each, in an order.
ENTRY = re.compile(
    r"`?([A-Za-z][^()<>\n|\0]*?)`?\s*\((\d[\d,]*(?:\.\d+)?)(?:\s?[x×]\s?(\d+))?\s*(tok/s|ms|s|req/s)\b([^()\n]*)\)"
)
FROM_TO = re.compile(r"from (\d[\d,]*\.\d+) tok/s to (\d[\d,]*\.\d+) tok/s")
SUMMARY = re.compile(
    r"`(?P<a>[^`]+)` Total TPS = (?P<x>[\d.,]+), `(?P<b>[^`]+)` Total TPS = (?P<y>[\d.,]+)\. "
    r"`(?P<first>[^`]+)` is (?P<way>faster|slower) by (?P<gap>[\d.,]+) tok/s \((?P<share>[\d.]+)%\)"
    r"(?:; Mean TPOT = (?P<tx>[\d.]+) ms vs (?P<ty>[\d.]+) ms, (?P<turn>reduced|increased) by "
    r"(?P<tgap>[\d.]+) ms \((?P<tshare>[\d.]+)%)?"
)
MIN_OPPOSITE_FACTOR = 1.1  # times: two ways to take a mean may differ in sign within it


def lines(study: PublishedStudy) -> Findings:
    """ "A (x tok/s) > B (y tok/s)": each number is of a block, and stands to the next as the
    sign says.
    """
    for left, right in pairwise([*ENTRY.finditer(study.page.prose), None]):
        if left is None:
            continue
        section = study.page.section(left.start())
        arms = [arm for arm in study.arms if arm.result.at in section]
        between = study.page.prose[left.end() : right.start()] if right else ""
        sign = between.strip() if re.fullmatch(r"\s*[<>≈=]\s*", between) else ""
        if right is not None and sign:
            first = _all_servers(left)
            second = _all_servers(right)
            if (sign == ">" and second.above(first)) or (sign == "<" and first.above(second)):
                left_name = left[1].rpartition(":")[2].strip()
                says = f"{left_name} {sign} {right[1].strip()}"
                why = f"{left_name} has {first} and {right[1].strip()} {second} {left[4]}"
                yield study.finding(left.start(), "result-line", says, "", why)
        before = study.page.prose[: left.start()].rstrip()
        is_after_sign = before.endswith((">", "<")) or before.rpartition("\n")[2].endswith(
            "Result:"
        )
        if left[4] == "tok/s" and not left[5] and (sign or is_after_sign):
            yield from _entry(study, left, arms)
    for rise in FROM_TO.finditer(study.page.prose):
        for group in (1, 2):
            printed = Number.printed(rise[group])
            if study.arms and not any(_shows(study, arm, printed) for arm in study.arms):
                why = "no block on this page has it"
                yield study.note(rise.start(group), "result-line", f"{rise[group]} tok/s", why)


def _all_servers(entry: re.Match[str]) -> Number:
    return Number.printed(entry[2]) * int(entry[3] or 1)


def _entry(study: PublishedStudy, entry: re.Match[str], arms: list[PublishedArm]) -> Findings:
    printed = Number.printed(entry[2])
    name = entry[1].rpartition(":")[2].strip(" `")
    totals = {arm.label: arm.total for arm in arms if arm.total}
    if not totals or any(_shows(study, arm, printed) for arm in arms):
        return
    near = difflib.get_close_matches(name, totals, 1)
    should_be = ""
    why = f"no block of this section has {entry[2]}"
    if near:
        arm = next(arm for arm in arms if arm.label == near[0])
        block = arm.result.where("total_per_s")
        should_be = str(totals[near[0]])
        why = f"the block of {near[0]} at line {block.line} has {totals[near[0]]}"
    says = f"{name} {entry[2]}"
    place = study.page.place(entry.start())
    yield Finding(
        place, "result-line", says, should_be, why, not near, misprint(printed) if near else "", 1
    )


def misprint(printed: Number) -> str:
    """The cause of all that follows from a number that no block has."""
    return f"{printed} is of no block"


def misprints(study: PublishedStudy) -> list[Number]:
    """The throughputs of lines that no block has."""
    printed = [
        Number.printed(entry[2])
        for entry in ENTRY.finditer(study.page.prose)
        if entry[4] == "tok/s" and not entry[5]
    ]
    return [
        number for number in printed if not any(_shows(study, arm, number) for arm in study.arms)
    ]


def _shows(study: PublishedStudy, arm: PublishedArm, printed: Number) -> bool:
    """Whether a number is an arm's throughput, of one server or of all that the page counts."""
    return arm.total.agrees(printed) or study.whole(arm).agrees(printed)


def summaries(study: PublishedStudy) -> Findings:
    """ "A is faster by d tok/s (p %); Mean TPOT reduced by e ms (q %)": differences, shares, and
    whether it was.
    """
    for line in SUMMARY.finditer(study.page.prose):
        texts = line.groupdict()
        x = Number.printed(texts["x"])
        y = Number.printed(texts["y"])
        first, second = (x, y) if texts["first"] == texts["a"] else (y, x)
        sign = -1 if texts["way"] == "slower" else 1
        yield from _claim(study, line, "gap", (first - second) * sign, " tok/s")
        yield from _claim(study, line, "share", (first / second - 1) * (100 * sign), "%")
        yield from _of_tokens(study, line, first, second)
        if texts["turn"] is None:
            continue
        tx = Number.printed(texts["tx"])
        ty = Number.printed(texts["ty"])
        sign = 1 if texts["turn"] == "reduced" else -1
        yield from _claim(study, line, "tgap", (ty - tx) * sign, " ms")
        yield from _claim(study, line, "tshare", (ty - tx) / ty * (100 * sign), "%")
        yield from _reversed(study, line, x, y)


def _of_tokens(
    study: PublishedStudy, line: re.Match[str], first: Number, second: Number
) -> Findings:
    """The same share from tokens and durations, where one throughput is no such rate."""
    first_rate, second_rate = (
        _of_total(study, total, Published.tokens_per_second) for total in (first, second)
    )
    ratio = first_rate / second_rate
    if first.agrees(first_rate) and second.agrees(second_rate):
        return
    share = (ratio - 1) * (-100 if line["way"] == "slower" else 100)
    wrong = abs(Number.printed(line["share"]).value - share.value) / 100
    if wrong > 2 * RATE_ERROR * ratio.value:
        why = f"tokens / duration are {first_rate} and {second_rate} tok/s"
        says = f"{line['share']}%"
        should_be = f"{share}%"
        yield study.finding(
            line.start("share"), "percent-of-rates", says, should_be, why, "rates", wrong
        )


def _of_total(
    study: PublishedStudy, total: Number, compute: Callable[[Published], Number]
) -> Number:
    """A number of the first result that has a throughput; unknown where none has it."""
    return next((compute(arm.result) for arm in study.arms if arm.total.agrees(total)), UNKNOWN)


def _claim(
    study: PublishedStudy, line: re.Match[str], group: str, expected: Number, unit: str
) -> Findings:
    printed = Number.printed(line[group])
    if printed.differs(expected):
        values = ("tx", "ty", "ms") if group.startswith("t") else ("x", "y", "tok/s")
        why = f"{line['a']} has {line[values[0]]} and {line['b']} {line[values[1]]} {values[2]}"
        says = f"{line[group]}{unit}"
        weight = off(printed, expected)
        yield study.finding(
            line.start(group), "summary-line", says, f"{expected}{unit}", why, weight=weight
        )


def _reversed(study: PublishedStudy, line: re.Match[str], x: Number, y: Number) -> Findings:
    """Whether latencies tell of decoding what the line tells of TPOT."""
    first_ms, second_ms = (_of_total(study, total, Published.decode_ms) for total in (x, y))
    ratio = (first_ms / second_ms).value
    if (
        ratio > MIN_OPPOSITE_FACTOR
        if line["turn"] == "reduced"
        else ratio < 1 / MIN_OPPOSITE_FACTOR
    ):
        why = (
            f"(E2EL - TTFT) / (tokens - 1) is {first_ms} ms for {line['a']}, {second_ms} for "
            f"{line['b']}: the opposite"
        )
        says = f"TPOT {line['turn']} by {line['tshare']}%"
        weight = 10 + abs(ratio - 1)
        yield study.finding(
            line.start("tgap"), "summary-line", says, change(ratio), why, "decoding", weight
        )

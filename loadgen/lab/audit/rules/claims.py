"""Claims: what a page says of candidates that it never tried, and what it calls a gain though nothing changed."""

import re

from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.number import plain
from loadgen.lab.audit.rules.gains import of_stages, printed_change
from loadgen.lab.audit.rules.losses import is_misnamed
from loadgen.lab.audit.study import PublishedStudy

UNAVAILABLE = re.compile(r"(?i)([a-z][\w.-]*)\s*\((?:not supported|unsupported|not available|failed|n/a)\b[^()\n]*\)")
LATENCIES = re.compile(
    r"`(?P<a>[^`]+)` Mean Latency = (?P<x>[\d.]+) ?s, `(?P<b>[^`]+)` Mean Latency = (?P<y>[\d.]+) ?s\. "
    r"`[^`]+` is faster by (?P<gap>\d+\.\d+) ?s"
    r"(?:[^\n]*?\bTPOT = [\d.]+ ms vs [\d.]+ ms, (?P<turn>reduced|increased) by [\d.]+ ms \((?P<times>\d+\.\d+)x)?"
)
MIN_TIMES_OFF = 1.1  # times: two ways to take a mean may differ within it


def untried(study: PublishedStudy) -> Findings:
    """What is said not to work, or to bring nothing, was tried: there is a command or a result."""
    page = study.page
    within = [*(each.at for each in page.commands), *(each.at for each in page.results)]
    for found in UNAVAILABLE.finditer(page.prose):
        section = page.section(found.start())
        shown = [each.engine for each in page.commands if each.at in section]
        if found[1] in TABLES and found[1] not in shown:
            why = "its section shows no command of it"
            yield study.note(found.start(), "untried", found[0], why, f"untried {found[1]}")
    for row in study.summary.rows:
        stages = study.stages_of(row)
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
        printed, pair = printed_change(row), of_stages(study, row)
        if printed is not None and printed.is_speedup and printed.ratio.value == 1:
            is_own = pair is not None and pair[0].result.same_run(pair[1].result)
            why = f"{row.name}: both cells are of {pair[0].name}" if pair and is_own else f"{row.name}: a tie"
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
        said = printed if line["turn"] == "reduced" else 1 / printed
        if max(said / ratio, ratio / said) > MIN_TIMES_OFF:
            why = f"(E2EL - TTFT) / (tokens - 1) is {times[0]} ms for {line['a']}, "
            why += f"{times[1]} for {line['b']}: the printed TPOT is no time between tokens"
            says, weight = f"TPOT {line['turn']}, {line['times']}x", max(said, 1 / said)
            should_be = f"{plain(ratio)}x faster" if ratio >= 1 else f"{plain(1 / ratio)}x slower"
            yield study.finding(line.start("times"), "summary-line", says, should_be, why, "decoding", weight)

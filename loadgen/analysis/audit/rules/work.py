"""Work: whether arms that are compared were asked the same, and did it."""

import re
from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import plain
from loadgen.analysis.audit.study import Arm, Study

ASKED = (
    re.compile(r"\b(\d{1,9}) input tokens, (\d{1,9}) output tokens"),
    re.compile(r"--random-input-len[ =](\d{1,9}) --random-output-len[ =](\d{1,9})"),
    re.compile(r"dataset_input_tokens: (\d{1,9})\s+dataset_output_tokens: (\d{1,9})"),
)
LENGTHS = 0.02  # relative: what prompts may be off what was asked, by tokenizers and templates
SHORT = 0.01  # of the tokens that were asked, or that another arm had
OTHERS = 0.05  # relative: prompts that were other prompts


def asked(study: Study) -> Iterator[Finding]:
    """Replies are as long as they were asked to be, or as those of the other arms."""
    wanted = {int(found[1]): int(found[2]) for pattern in ASKED for found in pattern.finditer(study.page.text)}
    for arms in study.by_workload().values():
        first = arms[0]
        for arm in arms:
            counts = _per_request(arm)
            if counts is None:
                continue
            sent, received, ok = counts
            each = next((out for length, out in wanted.items() if abs(sent - length) <= LENGTHS * length), None)
            tokens, other = arm.result.numbers["output_tokens"], _per_request(first)
            if each is not None and received < each * (1 - SHORT):
                share = f"{100 * received / each:.1f} % of {plain(ok)} x {each}"
                should_be, why = plain(ok * each), f"{share}: replies ended early, and arms did not the same work"
            elif each is None and other and other[2] == ok and abs(received / other[1] - 1) > SHORT:
                should_be, why = "", "not the same work as in other arms"
            else:
                continue
            place = arm.result.where("output_tokens")
            yield Finding(place, "work", f"{tokens} output tokens", should_be, why + _beside(arm, first), note=True)


def failures(study: Study) -> Iterator[Finding]:
    """All arms of a workload had as many requests succeed."""
    for arms in study.by_workload().values():
        known = [(arm, counts) for arm in arms if (counts := _per_request(arm))]
        if not known:
            continue
        most, whole = max(((counts[2], counts) for _, counts in known), key=lambda found: found[0])
        for arm, (sent, _, ok) in known:
            if ok < most:
                why = f"{plain(ok)} / {plain(most)} = {100 * ok / most:.1f} % of the requests of other arms succeeded"
                if abs(sent / whole[0] - 1) > OTHERS:
                    why += f", with {sent:.1f} input tokens each against {whole[0]:.1f}: other prompts, no speed-up"
                yield Finding(arm.result.where("ok"), "failures", f"{plain(ok)} requests", plain(most), why, note=True)


def _per_request(arm: Arm) -> tuple[float, float, float] | None:
    """Input tokens and output tokens a request that succeeded, and how many did."""
    counts = arm.result.all("input_tokens", "output_tokens", "ok")
    if counts is None or min(count.value for count in counts) <= 0:
        return None
    return counts[0].value / counts[2].value, counts[1].value / counts[2].value, counts[2].value


def _beside(arm: Arm, first: Arm) -> str:
    tokens = first.result.get("output_tokens")
    same = arm is first or tokens is None or tokens == arm.result.get("output_tokens")
    return "" if same else f"; {tokens} at line {first.result.where('output_tokens').line}"

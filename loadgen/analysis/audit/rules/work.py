"""Work: whether the replies of arms that are compared are as long as they were asked to be."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import plain
from loadgen.analysis.audit.study import PublishedArm, PublishedStudy

MAX_MISSING = 0.01  # of the tokens that were asked, or that another arm had


def asked(study: PublishedStudy) -> Iterator[Finding]:
    """Replies are as long as they were asked to be, or as those of the other arms."""
    for arms in study.by_workload().values():
        first = arms[0]
        for arm in arms:
            lengths, ok = arm.result.per_request(), arm.result.get("ok")
            if lengths is None or ok is None:
                continue
            workload = study.workload(arm)
            each = workload.output_tokens if workload and workload.fits(arm.result) else None
            tokens, other = arm.result.numbers["output_tokens"], first.result.per_request()
            if each is not None and lengths[1] < each * (1 - MAX_MISSING):
                share = 100 * lengths[1] / each
                should_be = plain(ok.value * each)
                why = f"{share:.1f} % of {ok} x {each}: replies ended early, and arms did not do the same work"
                off = 1 - share / 100
            elif (
                each is None and other and first.result.get("ok") == ok and abs(lengths[1] / other[1] - 1) > MAX_MISSING
            ):
                should_be, why, off = "", "not the same work as in other arms", abs(lengths[1] / other[1] - 1)
            else:
                continue
            place, says = arm.result.where("output_tokens"), f"{tokens} output tokens"
            yield Finding(place, "work", says, should_be, why + _beside(arm, first), True, "replies", off)


def _beside(arm: PublishedArm, first: PublishedArm) -> str:
    tokens = first.result.get("output_tokens")
    same = arm is first or tokens is None or tokens == arm.result.get("output_tokens")
    return "" if same else f"; {tokens} at line {first.result.where('output_tokens').line}"

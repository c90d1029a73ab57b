"""Work: whether the replies of arms that are compared are as long as they were asked to be."""

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import plain
from loadgen.lab.audit.study import PublishedStudy

MAX_MISSING = 0.01  # of the tokens that were asked, or that another arm had


def asked(study: PublishedStudy) -> Findings:
    """Replies are as long as they were asked to be, or as those of the other arms."""
    for arms in study.by_workload().values():
        first = arms[0]
        for arm in arms:
            lengths, ok = arm.result.per_request(), arm.result["ok"]
            if lengths is None:
                continue
            workload = study.workload(arm)
            each = workload.output_tokens if workload and workload.fits(arm.result) else None
            tokens, others = arm.result["output_tokens"], first.result["output_tokens"]
            excess = abs((tokens / others).value - 1)
            if each is not None and lengths[1] < each * (1 - MAX_MISSING):
                share = lengths[1] / each
                should_be, off = plain(ok.value * each), 1 - share
                why = f"{100 * share:.1f} % of {ok} x {each}: replies ended early, and arms did not do the same work"
            elif each is None and first.result["ok"] == ok and excess > MAX_MISSING:
                should_be, off, why = "", excess, "not the same work as in other arms"
            else:
                continue
            if tokens.value != others.value and others:
                why += f"; {others} at line {first.result.where('output_tokens').line}"
            place, says = arm.result.where("output_tokens"), f"{tokens} output tokens"
            yield Finding(place, "work", says, should_be, why, True, "replies", off)

"""Several targets (groups A and D): did each get its share, and are they alike?"""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from loadgen.checks.check import Check, inapplicable
from loadgen.confidence import CONFIDENCE, by_chance, interval
from loadgen.evidence import Evidence
from loadgen.histogram import Histogram
from loadgen.schedule import Int64s
from loadgen.settings import shown_urls
from loadgen.snapshot import Snapshot
from loadgen.words import ms, percent

SHARED, FEWEST, FAILING, SLOWER = "shared in turn", "fewest in flight first", "targets fail alike", "targets as fast"
# A request on its way to a connection of its own is in flight without having been sent, so that one more or less in
# flight is no mistake; nor is what follows from a hundredth of the requests.
MOST_MISSENT, BESIDE = 0.01, 1
# As much as the client itself may add to a latency before it is held to distort it.
MUCH_SLOWER = 0.05
_MEDIANS = {"TTFT": "ttft_sent", "TPOT": "tpot", "E2EL": "e2el_sent"}


def shared(evidence: Evidence) -> Iterator[Check]:
    """Check, of a run in turn, that every request was sent to the target whose turn it was; else nothing."""
    targets = evidence.snapshot.targets
    if not targets or evidence.settings.balance == "least-outstanding":
        return
    session = evidence.schedule.session
    wrong = sum(int((session[part.index] % len(targets) != k).sum()) for k, part in enumerate(targets))
    value = f"{', '.join(str(part.ended) for part in targets)} requests, {wrong} of them out of turn"
    advice = "this is a bug in loadgen: please report it with the result file"
    yield Check(SHARED, wrong == 0, value, "0 out of turn", advice)


def alike(evidence: Evidence) -> Iterator[Check]:
    """Check that the targets were loaded as asked and behaved as one; nothing where there is only one."""
    if not evidence.snapshot.targets:
        return
    if evidence.settings.balance == "least-outstanding":
        yield _fewest(evidence)
    yield _failing(evidence)
    yield _slower(evidence)


def _fewest(evidence: Evidence) -> Check:
    """Of each request that a target was chosen for: whether another one had fewer in flight as it was sent."""
    targets, begins = evidence.snapshot.targets, evidence.schedule.begins
    chosen = [(part.sent >= 0) & begins[part.index] for part in targets]
    wrong = sum(
        int((_in_flight(part, times) - _fewest_of(targets, times) > BESIDE).sum())
        for part, times in ((part, part.sent[these]) for part, these in zip(targets, chosen, strict=True))
    )
    count = sum(int(these.sum()) for these in chosen)
    if not count:
        return inapplicable(FEWEST, "nothing was sent")
    value = f"{wrong} of {count} requests were sent where {BESIDE + 1} more were in flight than elsewhere"
    advice = "connections were slow to open: open more before the clock starts, with --warm-connections"
    return Check(FEWEST, wrong <= MOST_MISSENT * count, value, percent(MOST_MISSENT), advice, evidence.relied_on)


def _fewest_of(targets: tuple[Snapshot, ...], times: Int64s) -> Int64s:
    fewest: Int64s = np.min([_in_flight(part, times) for part in targets], axis=0)
    return fewest


def _in_flight(part: Snapshot, times: Int64s) -> Int64s:
    """How many requests were in flight right before each time; one that closes then has made room."""
    was_sent = part.sent >= 0
    sent, closed = np.sort(part.sent[was_sent]), np.sort(part.closed[was_sent])
    count: Int64s = np.searchsorted(sent, times, side="left") - np.searchsorted(closed, times, side="right")
    return count


def _failing(evidence: Evidence) -> Check:
    """How likely each target's failures, or more, are to be among its requests if all fail alike."""
    targets, urls = evidence.snapshot.targets, shown_urls(evidence.settings)
    ended = [part.ended - part.outcomes.get("cancelled", 0) for part in targets]
    failed = [count - part.ok for count, part in zip(ended, targets, strict=True)]
    if not sum(ended):
        return inapplicable(FAILING, "nothing ended")
    chances = [by_chance(of, count, sum(failed), sum(ended)) for of, count in zip(failed, ended, strict=True)]
    least = (1 - CONFIDENCE) / len(targets)  # whichever of so many it is
    odd = [k for k, chance in enumerate(chances) if chance < least]
    named = odd or [chances.index(min(chances))]
    value = ", ".join(f"{urls[k]} failed {failed[k]} of {ended[k]}" for k in named)
    limit = (
        f"what chance gives one of {len(targets)} alike in {percent(CONFIDENCE)} of runs, {sum(failed)} of all failed"
    )
    advice = "its answers are not those of the others: read its log, or leave it out"
    return Check(FAILING, not odd, value, limit, advice, evidence.relied_on)


def _slower(evidence: Evidence) -> Check:
    """The median of each target, at the least that 99 % confidence allows, against the others' at the most."""
    targets, urls = evidence.snapshot.targets, shown_urls(evidence.settings)
    seen: list[tuple[float, str]] = []
    for k, part in enumerate(targets):
        for name, metric in _MEDIANS.items():
            own, others = part.histograms[metric], _others(targets, k, metric)
            (low, _), (_, high) = interval(own, 50), interval(others, 50)
            if low is not None and high is not None:
                medians = f"{ms(own.percentile(50))}, at the others {ms(others.percentile(50))}"
                seen.append((low / max(high, 1), f"median {name} at {urls[k]} {medians}"))
    if not seen:
        return inapplicable(SLOWER, "the answers are too few to tell")
    slower, value = max(seen)
    limit = f"slower by less than {percent(MUCH_SLOWER)}, at 99% confidence"
    advice = "the numbers of all are a mixture: read those of each target, and find out why it is slower"
    return Check(SLOWER, slower <= 1 + MUCH_SLOWER, value, limit, advice, evidence.relied_on)


def _others(targets: tuple[Snapshot, ...], k: int, metric: str) -> Histogram:
    return reduce(Histogram.__add__, (part.histograms[metric] for part in (*targets[:k], *targets[k + 1 :])))

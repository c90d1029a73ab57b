"""Several targets (groups A and D): did each get its share, and are they alike?"""

from collections.abc import Iterator

import numpy as np

from loadgen.checks.check import NONE, Bound, Check, inapplicable
from loadgen.config.settings import shown_urls
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.stats import hypothesis_tests
from loadgen.stats.percentile_confidence_interval import CONFIDENCE
from loadgen.util.arrays import Floats, Int64s
from loadgen.util.number_format import SHARE, four_digits, in_percent

SHARED, FEWEST, FAILING, SLOWER = (
    "targets out of turn",
    "balance not kept",
    "targets fail unevenly",
    "slower targets",
)
# A request on its way to a connection of its own is in flight without having been sent, so that one
# more or less in flight is no mistake, of each worker, which knows of its own requests alone; nor
# is what follows from a hundredth of the requests.
MAX_MISSENT, BESIDE = Bound(0.01, SHARE), 1
# As much as the client itself may add to a latency before it is held to distort it.
MUCH_SLOWER = 0.05
# By chance alone one of two is behind in all of them in 0.2 % of runs, one of ten in 1 %.
STRETCHES, MIN_IN_A_STRETCH = 10, 5


def shared(run: RunData) -> Iterator[Check]:
    """Check, of a run in turn, that every request was sent to the target whose turn it was; else
    nothing.
    """
    targets = run.snapshot.targets
    if not targets or run.settings.balance == "least-outstanding":
        return
    session = np.asarray(run.schedule.session_numbers)
    wrong = sum(
        int((session[part.index] % len(targets) != k).sum()) for k, part in enumerate(targets)
    )
    about = f"of {' + '.join(str(part.ended) for part in targets)} requests out of turn"
    advice = "this is a bug in loadgen: please report it with the result file"
    yield NONE.check(SHARED, wrong, about, advice)


def alike(run: RunData) -> Iterator[Check]:
    """Check that the targets were loaded as asked and behaved as one; nothing where there is
    only one.
    """
    if not run.snapshot.targets:
        return
    if run.settings.balance == "least-outstanding":
        yield _fewest(run)
    yield _failing(run)
    yield _slower(run)


def _fewest(run: RunData) -> Check:
    """Of each request that a target was chosen for: whether another one had fewer in flight as
    it was sent.
    """
    targets, beside = run.snapshot.targets, BESIDE * len(run.workers)
    wrong = count = 0
    for part in targets:
        times = part.sent[(part.sent >= 0) & run.schedule.begins[part.index]]
        fewest = np.min([_in_flight(other, times) for other in targets], axis=0)
        wrong += int((_in_flight(part, times) - fewest > beside).sum())
        count += len(times)
    if not count:
        return inapplicable(FEWEST, "nothing was sent")
    about = (
        f"of the requests ({wrong} of {count}) were sent where {beside + 1} more were in flight "
        "than elsewhere"
    )
    peak = throughput.peak_concurrency(run.snapshot)
    advice = (
        "connections were slow to open: open more before the clock starts, as "
        f"--warm-connections {2 * peak}"
    )
    return MAX_MISSENT.check(FEWEST, wrong / count, about, advice, run.relied_on)


def _in_flight(part: Snapshot, times: Int64s) -> Int64s:
    """How many requests were in flight right before each time; one that closes then has made
    room.
    """
    was_sent = part.sent >= 0
    sent, closed = np.sort(part.sent[was_sent]), np.sort(part.closed[was_sent])
    count: Int64s = np.searchsorted(sent, times, side="left") - np.searchsorted(
        closed, times, side="right"
    )
    return count


def _failing(run: RunData) -> Check:
    """How likely each target's failures, or more, are to be among its requests if all fail
    alike.
    """
    targets, urls = run.snapshot.targets, shown_urls(run.settings)
    failed = [part.not_ok for part in targets]
    ended = [part.ok + part.not_ok for part in targets]
    if not sum(ended):
        return inapplicable(FAILING, "nothing ended")
    chances = [
        hypothesis_tests.fisher_one_sided_p(of, count, sum(failed), sum(ended))
        for of, count in zip(failed, ended, strict=True)
    ]
    why = f"(one of {len(targets)} alike is below it in {in_percent(1 - CONFIDENCE)} of runs)"
    least = Bound((1 - CONFIDENCE) / len(targets), SHARE, ">=", why)  # whichever of them it is
    odd = [k for k, chance in enumerate(chances) if chance < least.allowed]
    named = odd or [chances.index(min(chances))]
    seen = ", ".join(f"{urls[k]} failed {failed[k]} of {ended[k]}" for k in named)
    about = f"likely by chance: {seen}, {sum(failed)} of all {sum(ended)} failed"
    advice = "this target fails more often than the others: read its log, or leave it out"
    useless = any(not targets[k].ok for k in odd)  # so many servers were never measured
    return least.check(FAILING, min(chances), about, advice, useless or run.relied_on)


def _slower(run: RunData) -> Check:
    """Each target against the others in the same stretches of the run, E2EL from sent.

    Answers that queue remember each other: over a whole run two queues that are alike come out as
    far apart as if they were not, but hardly with the same one behind in every stretch.
    """
    if _failing(run).ok is False:
        return inapplicable(SLOWER, "the targets do not fail alike")
    targets, urls = run.snapshot.targets, shown_urls(run.settings)
    seen = [_slowness(targets, k) for k in range(len(targets))]
    if not all(len(ratios) for ratios in seen):
        return inapplicable(SLOWER, "the answers are too few to tell")
    # First who was slower in most stretches, then by how much.
    behind, ratio, k = max(
        (int((ratios > 1).sum()), float(np.median(ratios)), k) for k, ratios in enumerate(seen)
    )
    value = (
        f"{urls[k]} took longer than the others in {behind} of {STRETCHES} stretches, "
        f"{four_digits(ratio)} times as long"
    )
    limit = f"{STRETCHES} stretches and {1 + MUCH_SLOWER} times"
    advice = (
        "the totals mix fast and slow targets: read the numbers of each target, and find out "
        "why this one is slower"
    )
    alike = behind < STRETCHES or ratio <= 1 + MUCH_SLOWER
    return Check(SLOWER, alike, value, limit, advice, run.relied_on)


def _slowness(targets: tuple[Snapshot, ...], k: int) -> Floats:
    """How many times as long as at the others an answer of the `k`-th target took, in each stretch:
    medians.

    Empty where a stretch has too few answers.
    """
    sent = np.concatenate([part.sent for part in targets])
    took = np.concatenate([part.closed for part in targets]) - sent
    is_mine = np.repeat(np.arange(len(targets)) == k, [len(part.sent) for part in targets])
    order = np.argsort(sent, kind="stable")
    stretches = [
        (took[here][is_mine[here]], took[here][~is_mine[here]])
        for here in np.array_split(order[sent[order] >= 0], STRETCHES)
    ]
    if any(min(len(mine), len(theirs)) < MIN_IN_A_STRETCH for mine, theirs in stretches):
        return np.empty(0)
    return np.array([np.median(mine) / max(np.median(theirs), 1) for mine, theirs in stretches])

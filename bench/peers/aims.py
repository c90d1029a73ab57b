"""Aims: what loadgen has to be beside its peers, held against what was measured in the same run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.peers.costs import Costs
from bench.peers.peer import METRICS, PERCENTILES
from bench.peers.quiet import median, quiet
from bench.peers.trial import Trial
from bench.table import figure

MAX_US_PER_TOKEN, MIN_RATIO = 6.0, 7.0
MAX_FIRST_REQUEST_S, MAX_MEASURING_MB = 1.0, 60.0
MAX_FIRST_RUN = 1.2  # of the Rust client's time to its first request
BOUND_MS, BOUND_SHARE = 0.5, 0.01  # of a percentile's distance from the truth, whichever is more


@dataclass(frozen=True, slots=True)
class Aim:
    """One of them.

    Attributes:
        what: In words, with its bound.
        found: What was measured, in words.
        met: Whether that is within the bound; None: it was not measured.
    """

    what: str
    found: str
    met: bool | None

    @property
    def cells(self) -> tuple[str, str, str]:
        """As a table shows it."""
        return self.what, self.found, {True: "met", False: "**missed**", None: "n/a"}[self.met]


def excess(trial: Trial) -> float:
    """The most of its bound that an error of any percentile takes; above 1 a percentile is out
    of its bound.
    """
    shares = []
    for name in METRICS:
        for p in PERCENTILES:
            truth = trial.served.times_ms[name][p]
            apart = abs(trial.reported.times_ms[name][p] - truth)
            shares.append(apart / max(BOUND_MS, BOUND_SHARE * truth))
    return max(shares)


def aims(ours: Costs, one_core: Costs, tools: Mapping[str, Costs]) -> list[Aim]:
    """All of them.

    Args:
        ours: With full recording.
        one_core: The same on one core.
        tools: The other tools, by name.
    """
    heavy, light = quiet(one_core.trials.get("W3", ())), ours.trials.get("W1", ())
    cost = ours.us_per_token("W1")
    others = {
        name: found
        for name, each in tools.items()
        if (found := each.us_per_token("W1")) is not None
    }
    best = min(others, key=lambda name: others[name], default="")
    ratio = others[best] / cost if best and cost else None
    first_s = median(light, lambda trial: trial.first_request_s)
    memory = [
        mb
        for trials in ours.trials.values()
        for each in trials
        if (mb := each.reported.measuring_mb) is not None
    ]
    worst = max(map(excess, heavy), default=None)
    return [
        Aim(
            "W3 on one core: VALID",
            _verdicts(heavy),
            all(_valid(trial) for trial in heavy) if heavy else None,
        ),
        Aim(
            f"W3 on one core: p50 and p99 of TTFT, ITL and TPOT {BOUND_MS:g} ms or "
            f"{BOUND_SHARE:.0%} from the truth",
            f"the worst takes {figure(worst)} of its bound",
            None if worst is None else worst <= 1,
        ),
        _most("CPU us per token, W1, all in, every token recorded", cost, MAX_US_PER_TOKEN),
        Aim(
            f"the same: the best other tool costs at least {MIN_RATIO:g} times as much",
            f"{figure(ratio)} ({best})" if best else "n/a",
            None if ratio is None else ratio >= MIN_RATIO,
        ),
        _most("s from the command to the first request, W1", first_s, MAX_FIRST_REQUEST_S),
        _most(
            "MB of the measuring process, in any run", max(memory, default=None), MAX_MEASURING_MB
        ),
    ]


def start_aims(ours: Costs, first: Costs, rival: Costs) -> list[Aim]:
    """Those of the start, beside a rival in the same run.

    Args:
        ours: As it comes, with what earlier runs have cached.
        first: With empty caches.
        rival: The other tool.
    """
    rivals_s, rivals_cpu_s = rival.first_request_s, rival.startup_s
    return [
        _beside("s from the command to the first request, S", ours.first_request_s, rivals_s, 1.0),
        _beside("the same, first run on a machine", first.first_request_s, rivals_s, MAX_FIRST_RUN),
        _beside("CPU s of a run of 20 requests, S", ours.startup_s, rivals_cpu_s, 1.0),
    ]


def _beside(what: str, found: float | None, others: float | None, most: float) -> Aim:
    ratio = found / others if found and others else None
    told = f"{figure(found)}, {figure(ratio)} of {figure(others)}"
    return Aim(
        f"{what}: at most {most:g} of the Rust client's",
        told,
        None if ratio is None else ratio <= most,
    )


def _most(what: str, found: float | None, bound: float) -> Aim:
    return Aim(
        f"{what}: at most {bound:g}", figure(found), None if found is None else found <= bound
    )


def _valid(trial: Trial) -> bool:
    return trial.reported.says.startswith("VALID")


def _verdicts(trials: Sequence[Trial]) -> str:
    return "; ".join(trial.reported.says for trial in trials) or "n/a"

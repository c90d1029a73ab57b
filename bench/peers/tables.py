"""Tables: what the comparison of peers found, in Markdown."""

from collections.abc import Mapping, Sequence

from bench.peers.aims import Aim
from bench.peers.costs import Costs
from bench.peers.peer import METRICS, PERCENTILES
from bench.peers.quiet import DISTURBED_S, MARK, all_disturbed, median, quiet
from bench.peers.trial import Trial
from bench.table import figure
from tests.helpers.documents import table

Found = Mapping[str, Costs]  # by the peer's name


def costs_table(found: Found, installed_mb: Mapping[str, float]) -> str:
    """What each costs."""
    head = [
        "client",
        "us/request",
        "us/token event",
        "us/token W1",
        "us/token W3",
        "start-up CPU s",
        "first request s",
    ]
    head += ["largest process MB", "all processes MB", "processes", "install MB"]
    return table(
        head, (_costs(name, costs, installed_mb.get(name)) for name, costs in found.items())
    )


def load_table(found: Found, load: str) -> str:
    """How true each was under a load."""
    head = [
        "client",
        "req/s",
        "latest, ms",
        *(f"{name.upper()} p50 / p99 ms (truth)" for name in METRICS),
        "says",
    ]
    rows = ((name, costs.trials[load]) for name, costs in found.items() if costs.trials.get(load))
    return table(head, (_truth(name, trials) for name, trials in rows))


def aims_table(aims: Sequence[Aim]) -> str:
    """What loadgen has to be."""
    return table(["loadgen has to be", "measured", ""], (aim.cells for aim in aims))


def runs_table(found: Found) -> str:
    """Every run, and which of them were disturbed."""
    head = ["run", "CPU s", "wall s", "CPU s of others", ""]
    trials = [trial for costs in found.values() for each in costs.trials.values() for trial in each]
    return table(head, map(_run, trials))


def pair(times: Mapping[int, float] | None) -> str:
    """Two percentiles, or a dash where they are not told."""
    return " / ".join(figure(times[p]) for p in PERCENTILES) if times else "-"


def _costs(name: str, costs: Costs, installed_mb: float | None) -> Sequence[str]:
    fit, heavy = costs.fit or (None, None), costs.trials.get("W3", ())
    processes = max((trial.cost.processes for trial in heavy), default=None)
    return [
        name + (MARK if any(map(all_disturbed, costs.trials.values())) else ""),
        *map(figure, fit),
        figure(costs.us_per_token("W1")),
        figure(costs.us_per_token("W3")),
        figure(costs.startup_s),
        figure(median(costs.trials.get("W1", ()), lambda trial: trial.first_request_s)),
        figure(median(heavy, lambda trial: trial.cost.largest_mb)),
        figure(median(heavy, lambda trial: trial.cost.sum_mb)),
        "n/a" if processes is None else str(processes),
        "-" if installed_mb is None else figure(installed_mb),
    ]


def _truth(name: str, trials: Sequence[Trial]) -> Sequence[str]:
    shown = min(quiet(trials), key=lambda trial: trial.cost.cpu_s)  # all its figures of one run
    times = [
        f"{pair(shown.reported.times_ms.get(metric))} ({pair(shown.served.times_ms[metric])})"
        for metric in METRICS
    ]
    return [
        name
        + (MARK if all_disturbed(trials) else "")
        + (" (server late)" if shown.served.overloaded else ""),
        figure(median(trials, lambda trial: trial.served.achieved_rps)),
        "-"
        if shown.load.streams
        else "Poisson"
        if shown.poisson
        else figure(shown.served.late_max_ms),
        *times,
        shown.reported.says or "nothing",
    ]


def _run(trial: Trial) -> Sequence[str]:
    return [
        f"{trial.load.name} {trial.peer}",
        figure(trial.cost.cpu_s),
        figure(trial.cost.wall_s),
        figure(trial.others_s),
        "disturbed" if trial.others_s > DISTURBED_S else "",
    ]

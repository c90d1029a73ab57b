"""Budget of connections: how many a worker opens before the clock starts, and whether it can have those it needs."""

import logging
import math
from urllib.parse import urlsplit

from loadgen.client.idle_connections import FIRST_LIMIT_NS
from loadgen.client.spare_connections import MAINTAIN_NS
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util import machine, source_address
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import plural
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.due_times import DueTimes

# How long requests take: to the first token, and from each to the next; the tokens where their number is not known.
GUESSED_TTFT_S, GUESSED_TPOT_S, GUESSED_TOKENS = 0.5, 0.02, 75
MAX_WARM = 4096

logger = logging.getLogger(__name__)


def check_limits(settings: RunSettings, schedule: DueTimes, partition: Partition = WHOLE) -> None:
    """Refuse a run that is sure to need more connections than this process can have, or addresses that it lacks.

    Args:
        settings: The settings of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        partition: This worker's part of them.

    Raises:
        BadInput: Naming the flag that asks for them.
    """
    source_address.check(source_address.parse(settings.source_address), list(_hosts(settings).values()))
    at_once = _sure(settings, schedule)
    ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
    short = lacking(settings, max(at_once, ahead), partition)
    if short is not None:
        asks = "--warm-connections" if ahead > at_once else _flag_of_cap(settings)
        many = f"{at_once} requests at once need as many connections" if at_once > 1 else "a request needs a connection"
        what = f"{plural(ahead, 'connection')} ahead" if ahead > at_once else many
        problem, remedy = short
        raise BadInput(asks, f"{what}, and {problem}", f"{remedy}, or ask for fewer")


def _flag_of_cap(settings: RunSettings) -> str:
    """Return the flag that says how many requests may be in flight."""
    names = ("users", "concurrency_profile")
    return next((flag(name) for name in names if getattr(settings, name) is not None), "--max-concurrency")


def warn_of_limits(
    settings: RunSettings, schedule: DueTimes, output_tokens: float, partition: Partition = WHOLE
) -> None:
    """Log a warning where a run is likely, but not sure, to need more connections than its processes can have.

    Args:
        output_tokens: Mean of what they ask for; 0 where it is not known.
    """
    wanted = _wanted(settings, schedule, _latency_s(output_tokens))
    likely = math.ceil(min(wanted, settings.max_concurrency or wanted))
    short = lacking(settings, likely, partition)
    if short is not None:
        problem, remedy = short
        said = "some %s requests are likely to be in flight at once, and %s: those beyond will fail; %s"
        logger.warning(said, likely, problem, remedy)


def warm_count(
    settings: RunSettings, schedule: DueTimes, output_tokens: float = 0.0, partition: Partition = WHOLE
) -> int:
    """Return how many connections this worker opens before the clock starts: its share of those of the run.

    auto: those that are likely to be used before they are too old, and the spare ones. The first are the rate times a
    guessed latency, but times the first limit of idle connections at most; of a burst they are all. The count is no
    more than MAX_WARM where it is a guess, nor than file descriptors and local ports allow.

    Args:
        output_tokens: Mean of what they ask for; 0 where it is not known.
    """
    if settings.warm_connections != "auto":
        return partition.share(int(settings.warm_connections))
    used = _wanted(settings, schedule, min(_latency_s(output_tokens), FIRST_LIMIT_NS / NS_PER_S))
    used = math.ceil(min(used, settings.max_concurrency or math.inf)) + _spare(settings, schedule)
    at_most = max(MAX_WARM, partition.share(_sure(settings, schedule)))
    return min(partition.share(min(used, schedule.count)), at_most, max_connections(settings))


def spare_count(settings: RunSettings, schedule: DueTimes, warm: int, partition: Partition = WHOLE) -> int:
    """Return how many connections this worker keeps open beyond those in use, while the clock runs.

    As many as requests may need until connections are looked after again: those due meanwhile, with room for three
    standard deviations of a Poisson process; in a closed loop all of the cap, as answers of equal length end together.
    No more than there are requests for which those opened before are too few, or too old by then.

    Args:
        warm: How many connections are open already.
    """
    if settings.warm_connections == "0":
        return 0
    later = partition.share(schedule.due_later(FIRST_LIMIT_NS))
    most = max(later, partition.share(schedule.count) - warm)
    return max(0, min(partition.share(_spare(settings, schedule)), MAX_WARM, most))


def max_connections(settings: RunSettings) -> int:
    """Return how many connections each process of a run may have to all its servers."""
    return machine.max_connections(_pairs(settings), int(settings.workers))


def _spare(settings: RunSettings, schedule: DueTimes) -> int:
    """Return the spare connections of a whole run, without the limits of a process."""
    rate, cap = _rate(settings, schedule), settings.max_concurrency or math.inf
    due = rate * MAINTAIN_NS / NS_PER_S
    wanted = 1 + due + 3 * math.sqrt(due)
    return 0 if math.isinf(min(wanted, cap)) else math.ceil(min(wanted, cap))


def _sure(settings: RunSettings, schedule: DueTimes) -> int:
    """Return how many requests are sure to be in flight at once: those of a burst up to the cap, else one."""
    sessions = schedule.sessions
    return min(settings.max_concurrency or sessions, sessions) if schedule.duration_ns == 0 else min(1, sessions)


def _wanted(settings: RunSettings, schedule: DueTimes, latency_s: float) -> float:
    """Return how many requests are likely in flight at once if each takes `latency_s`, without the cap."""
    return min(_rate(settings, schedule) * latency_s, schedule.sessions)


def _rate(settings: RunSettings, schedule: DueTimes) -> float:
    """Return the maximum rate of requests per second, as far as it is known beforehand."""
    return settings.ramp_up_end_rps or schedule.rate


def _latency_s(output_tokens: float) -> float:
    """Guess how long a request for this many tokens takes; 0 tokens: not known."""
    return GUESSED_TTFT_S + (output_tokens or GUESSED_TOKENS) * GUESSED_TPOT_S


def lacking(settings: RunSettings, needed: int, partition: Partition = WHOLE) -> tuple[str, str] | None:
    """Return problem and remedy where a run cannot have `needed` connections; None where it can."""
    hosts, by_ports, workers = (
        _hosts(settings),
        _pairs(settings) * machine.max_connections_by_ports(),
        int(settings.workers),
    )
    here = math.ceil(needed * workers / max(workers, partition.count))  # where machines share a run, one makes its part
    if here > by_ports:
        part = f"for its part ({here}) " if here < needed else ""
        servers = "one server" if len(hosts) == 1 else f"{len(hosts)} servers"
        widen = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`'
        remedy = f"give further addresses of this machine with {source_address.FLAG}, or {widen}"
        return f"{part}this machine's local ports allow {by_ports} to {servers}", remedy
    share, allowed = partition.share(needed), max_connections(settings)
    if share > allowed:
        process = "this process" if partition.count == 1 else f"each of {partition.count} processes"
        remedy = f"raise the limit with `ulimit -n {share + 1000}`, as root if need be (`loadgen doctor` says more)"
        return f"{process} may have {allowed}", remedy
    return None


def _pairs(settings: RunSettings) -> int:
    """Count the pairs of an address of ours and one of a server: each pair has all local ports."""
    own = source_address.parse(settings.source_address)
    return sum(source_address.count_addresses(own, host) for host in _hosts(settings).values())


def _hosts(settings: RunSettings) -> dict[str, str]:
    """Return the host of every server, by host and port."""
    parts = map(urlsplit, settings.urls)
    named = {part.netloc.rpartition("@")[2]: part.hostname or "" for part in parts}
    return named or {"": settings.host or "127.0.0.1"}

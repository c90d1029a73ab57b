"""Pool: how many connections a worker opens before the clock starts, and whether it can have those it needs."""

import logging
import math
from urllib.parse import urlsplit

from loadgen import machine, sources
from loadgen.errors import BadInput
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings
from loadgen.stripe import WHOLE, Stripe
from loadgen.words import plural

# How long requests take: so long to the first token, and from each to the next; so many tokens where nothing says it.
GUESSED_TTFT_S, GUESSED_TPOT_S, GUESSED_TOKENS = 0.5, 0.02, 75
MOST_WARM = 4096

logger = logging.getLogger(__name__)


def check_limits(settings: RunSettings, schedule: Schedule, stripe: Stripe = WHOLE) -> None:
    """Refuse what is sure to need more connections than this process can have, or addresses that it has not.

    Args:
        settings: Of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        stripe: This worker's part of them.

    Raises:
        BadInput: Naming the flag that asks for them.
    """
    sources.check(sources.parse(settings.source_address), list(_hosts(settings).values()))
    at_once = _sure(settings, schedule)
    ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
    short = lacking(settings, max(at_once, ahead), stripe)
    if short is not None:
        flag = "--warm-connections" if ahead > at_once else "--max-concurrency"
        many = f"{at_once} requests at once need as many connections" if at_once > 1 else "a request needs a connection"
        what = f"{plural(ahead, 'connection')} ahead" if ahead > at_once else many
        problem, remedy = short
        raise BadInput(flag, f"{what}, and {problem}", f"{remedy}, or ask for fewer")


def warn_of_limits(settings: RunSettings, schedule: Schedule, output_tokens: float, stripe: Stripe = WHOLE) -> None:
    """Say so where a run is likely to need more connections than its processes can have, though it is not sure to.

    Args:
        settings: Of the run, resolved.
        schedule: When requests are due.
        output_tokens: Mean of what they ask for; 0 where it is not known.
        stripe: Of the worker that says it.
    """
    wanted = _wanted(settings, schedule, output_tokens)
    likely = math.ceil(min(wanted, settings.max_concurrency or wanted))
    short = lacking(settings, likely, stripe)
    if short is not None:
        problem, remedy = short
        said = "some %s requests are likely to be in flight at once, and %s: those beyond will fail; %s"
        logger.warning(said, likely, problem, remedy)


def warm_count(settings: RunSettings, schedule: Schedule, output_tokens: float = 0.0, stripe: Stripe = WHOLE) -> int:
    """How many connections this worker opens before the clock starts: its share of those of the run.

    auto: as many as are likely to be in flight (the rate times a guessed latency; all of a burst), but no more than
    twice the cap (a connection rests before it is used again), than MOST_WARM where that is a guess, nor than file
    descriptors and local ports allow.

    Args:
        settings: Of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        output_tokens: Mean of what they ask for; 0 where it is not known.
        stripe: This worker's part of them.
    """
    if settings.warm_connections != "auto":
        return stripe.share(int(settings.warm_connections))
    likely = math.ceil(min(_wanted(settings, schedule, output_tokens), 2 * (settings.max_concurrency or math.inf)))
    most = max(MOST_WARM, stripe.share(_sure(settings, schedule)))
    return min(stripe.share(likely), most, machine.most_connections(_pairs(settings), int(settings.workers)))


def _sure(settings: RunSettings, schedule: Schedule) -> int:
    """How many requests are sure to be in flight at once: those of a burst, as far as a cap lets them, else one."""
    sessions = int(schedule.begins.sum())
    return min(settings.max_concurrency or sessions, sessions) if schedule.duration_ns == 0 else min(1, sessions)


def _wanted(settings: RunSettings, schedule: Schedule, output_tokens: float) -> float:
    """How many requests are likely to be in flight at once, as far as no cap holds them back."""
    rate = settings.ramp_up_end_rps or schedule.rate
    likely = rate * (GUESSED_TTFT_S + (output_tokens or GUESSED_TOKENS) * GUESSED_TPOT_S)
    return min(likely, int(schedule.begins.sum()))


def lacking(settings: RunSettings, needed: int, stripe: Stripe = WHOLE) -> tuple[str, str] | None:
    """Where a run cannot have so many connections: what there is instead, and what helps; None where it can."""
    hosts, by_ports, workers = _hosts(settings), _pairs(settings) * machine.most_by_ports(), int(settings.workers)
    here = math.ceil(needed * workers / max(workers, stripe.of))  # where machines share a run, one makes its part
    if here > by_ports:
        part = f"for its part ({here}) " if here < needed else ""
        servers = "one server" if len(hosts) == 1 else f"{len(hosts)} servers"
        widen = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`'
        remedy = f"give further addresses of this machine with {sources.FLAG}, or {widen}"
        return f"{part}this machine's local ports allow {by_ports} to {servers}", remedy
    share, allowed = stripe.share(needed), machine.most_connections(_pairs(settings), workers)
    if share > allowed:
        process = "this process" if stripe.of == 1 else f"each of {stripe.of} processes"
        remedy = f"raise the limit with `ulimit -n {share + 1000}`, as root if need be (`loadgen doctor` says more)"
        return f"{process} may have {allowed}", remedy
    return None


def _pairs(settings: RunSettings) -> int:
    """How many pairs there are of an address of ours and one of a server: each has the local ports for itself."""
    own = sources.parse(settings.source_address)
    return sum(sources.count(own, host) for host in _hosts(settings).values())


def _hosts(settings: RunSettings) -> dict[str, str]:
    """The host of every server, by its host and port."""
    parts = map(urlsplit, settings.urls)
    named = {part.netloc.rpartition("@")[2]: part.hostname or "" for part in parts}
    return named or {"": settings.host or "127.0.0.1"}

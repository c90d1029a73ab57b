"""Pool: how many connections a worker opens before the clock starts, and whether it can have those it needs."""

import math
from urllib.parse import urlsplit

from loadgen import machine
from loadgen.errors import BadInput
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings
from loadgen.stripe import WHOLE, Stripe

# How long requests take, when nothing says it: so long at least, or to the first token and from each to the next.
GUESSED_LATENCY_S = 2.0
GUESSED_TTFT_S, GUESSED_TPOT_S = 0.5, 0.02
MOST_WARM = 4096


def check_limits(settings: RunSettings, schedule: Schedule, stripe: Stripe = WHOLE) -> None:
    """Refuse what is sure to need more connections than this process can have.

    Args:
        settings: Of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        stripe: This worker's part of them.

    Raises:
        BadInput: Naming the flag that asks for them.
    """
    sessions = int(schedule.begins.sum())
    at_once = min(settings.max_concurrency or sessions, sessions) if schedule.duration_ns == 0 else 0
    ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
    needed, addresses, workers = max(at_once, ahead), _addresses(settings), int(settings.workers)
    allowed = machine.most_connections(addresses, workers)
    if stripe.share(needed) <= allowed:
        return
    flag = "--warm-connections" if ahead > at_once else "--max-concurrency"
    what = "connections ahead" if ahead > at_once else "requests at once need as many connections"
    if needed > (by_ports := addresses * machine.most_by_ports()):
        servers = "one server" if addresses == 1 else f"{addresses} servers"
        problem = f"{needed} {what}, and this machine's local ports allow {by_ports} to {servers}"
        remedy = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`, or ask for fewer'
    else:
        share, each = ("", "this process") if stripe.of == 1 else (f" in {stripe.of} processes", "each")
        problem = f"{needed} {what}{share}, and {each} may have {allowed}"
        remedy = f"raise the limit with `ulimit -n {stripe.share(needed) + 1000}`, or ask for fewer"
    raise BadInput(flag, problem, remedy)


def warm_count(settings: RunSettings, schedule: Schedule, output_tokens: float = 0.0, stripe: Stripe = WHOLE) -> int:
    """How many connections this worker opens before the clock starts: its share of those of the run.

    auto: as many as are likely to be in flight (the rate times a guessed latency; all of a burst), but no more than
    twice the cap (a connection rests before it is used again), nor than file descriptors and local ports allow.

    Args:
        settings: Of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        output_tokens: Mean of what they ask for, as far as it is known.
        stripe: This worker's part of them.
    """
    if settings.warm_connections != "auto":
        return stripe.share(int(settings.warm_connections))
    allowed = machine.most_connections(_addresses(settings), int(settings.workers))
    rate, sessions = settings.ramp_up_end_rps or schedule.rate, int(schedule.begins.sum())
    likely = rate * max(GUESSED_LATENCY_S, GUESSED_TTFT_S + output_tokens * GUESSED_TPOT_S)
    most = math.ceil(min(likely, 2 * (settings.max_concurrency or math.inf), sessions))
    return min(stripe.share(most), MOST_WARM, allowed)


def _addresses(settings: RunSettings) -> int:
    """How many addresses the run connects to: each has the range of local ports for itself."""
    return len({urlsplit(url).netloc.rpartition("@")[2] for url in settings.urls}) or 1

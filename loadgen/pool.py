"""Pool: how many connections a run opens before its clock starts, and whether it can have those it needs."""

import math
from urllib.parse import urlsplit

from loadgen import machine
from loadgen.errors import BadInput
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings

# How long requests take: so long to the first token, and from each to the next; so many tokens where nothing says it.
GUESSED_TTFT_S, GUESSED_TPOT_S, GUESSED_TOKENS = 0.5, 0.02, 75
MOST_WARM = 4096


def check_limits(settings: RunSettings, schedule: Schedule) -> None:
    """Refuse what is sure to need more connections than this process can have.

    Raises:
        BadInput: Naming the flag that asks for them.
    """
    sessions = int(schedule.begins.sum())
    at_once = min(settings.max_concurrency or sessions, sessions) if schedule.duration_ns == 0 else 0
    ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
    needed, addresses = max(at_once, ahead), _addresses(settings)
    allowed = machine.most_connections(addresses)
    if needed <= allowed:
        return
    flag = "--warm-connections" if ahead > at_once else "--max-concurrency"
    what = "connections ahead" if ahead > at_once else "requests at once need as many connections"
    if needed > (by_ports := addresses * machine.most_by_ports()):
        servers = "one server" if addresses == 1 else f"{addresses} servers"
        problem = f"{needed} {what}, and this machine's local ports allow {by_ports} to {servers}"
        remedy = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`, or ask for fewer'
    else:
        problem = f"{needed} {what}, and this process may have {allowed}"
        remedy = f"raise the limit with `ulimit -n {needed + 1000}`, or ask for fewer"
    raise BadInput(flag, problem, remedy)


def warm_count(settings: RunSettings, schedule: Schedule, output_tokens: float = 0.0) -> int:
    """How many connections to open before the clock starts.

    auto: as many as are likely to be in flight (the rate times a guessed latency; all of a burst), but no more than
    twice the cap (a connection rests before it is used again), nor than file descriptors and local ports allow.

    Args:
        settings: Of the run.
        schedule: When requests are due.
        output_tokens: Mean of what they ask for; 0 where it is not known.
    """
    if settings.warm_connections != "auto":
        return int(settings.warm_connections)
    allowed = machine.most_connections(_addresses(settings))
    rate, sessions = settings.ramp_up_end_rps or schedule.rate, int(schedule.begins.sum())
    likely = rate * (GUESSED_TTFT_S + (output_tokens or GUESSED_TOKENS) * GUESSED_TPOT_S)
    return math.ceil(min(likely, 2 * (settings.max_concurrency or math.inf), sessions, MOST_WARM, allowed))


def _addresses(settings: RunSettings) -> int:
    """How many addresses the run connects to: each has the range of local ports for itself."""
    return len({urlsplit(url).netloc.rpartition("@")[2] for url in settings.urls}) or 1

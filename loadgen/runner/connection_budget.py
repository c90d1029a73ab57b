"""Budget of connections: how many a worker opens before the clock starts, and whether it can
have those it needs.
"""

import logging
import math
from urllib.parse import urlsplit

from msgspec import Struct

from loadgen.config.settings import RunSettings
from loadgen.core.keep_alive import SAFE_AGE_NS
from loadgen.errors import BadInput, setting, spell
from loadgen.util import machine, source_address
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import plural
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload import target
from loadgen.workload.due_times import DueTimes

# How long requests take: to the first token, and from each to the next; the tokens where their
# number is not known.
GUESSED_TTFT_S = 0.5
GUESSED_TPOT_S = 0.02
GUESSED_TOKENS = 75
MAX_WARM = 4096

logger = logging.getLogger(__name__)


class ConnectionBudget(Struct, frozen=True):
    """The connections of one worker.

    Attributes:
        settings: The settings of the run, resolved: so many workers share this machine's ports.
        schedule: When its requests are due.
        partition: This worker's part of them.
    """

    settings: RunSettings
    schedule: DueTimes
    partition: Partition = WHOLE

    def check(self) -> None:
        """Refuse a run that is sure to need more connections than this process can have, or
        addresses that it lacks.

        Raises:
            BadInput: Naming the flag that asks for them.
        """
        settings = self.settings
        source_address.check(
            source_address.parse(settings.source_address), list(_hosts(settings).values())
        )
        at_once = self._sure()
        ahead = 0 if settings.warm_connections == "auto" else int(settings.warm_connections)
        if short := self._lacking(max(at_once, ahead)):
            asks = setting.max_concurrency
            if ahead > at_once:
                asks = setting.warm_connections
            elif settings.users is not None:
                asks = setting("users")
            elif settings.concurrency_profile is not None:
                asks = setting("concurrency_profile")
            single = "a request needs a connection"
            many = f"{at_once} requests at once need as many connections" if at_once > 1 else single
            what = f"{plural(ahead, 'connection')} ahead" if ahead > at_once else many
            problem, remedy = short
            raise BadInput(asks, f"{what}, and {problem}", f"{remedy}, or ask for fewer")

    def warn(self, output_tokens: float) -> None:
        """Log a warning where a run is likely, but not sure, to need more connections than its
        processes can have.

        Args:
            output_tokens: Mean of what requests ask for; 0 where it is not known.
        """
        in_flight = self._in_flight(_latency_s(output_tokens))
        likely = math.ceil(min(in_flight, self.settings.max_concurrency or in_flight))
        if short := self._lacking(likely):
            problem, remedy = short
            text = (
                "some %s requests are likely to be in flight at once, and %s: those beyond "
                "will fail; %s"
            )
            logger.warning(text, likely, problem, spell(remedy))

    def warm_count(self, output_tokens: float = 0.0) -> int:
        """Return how many connections this worker opens before the clock starts: its share of
        those of the run.
        """
        # auto: those that are sure to be used at once. Idle ones could hold the threads of a server
        # that gives each connection one. But a TLS handshake takes long, and shows that the server
        # serves the connection: over TLS they are those that requests are likely to need, as far
        # as they may be used, and no more than MAX_WARM, as that is a guess.
        settings = self.settings
        partition = self.partition
        if settings.warm_connections != "auto":
            return partition.share(int(settings.warm_connections))
        sure = self._sure() if self.schedule.duration_ns == 0 else 0  # else none is due at once
        likely = 0.0
        if {urlsplit(url).scheme for url in settings.urls} == {"https"}:
            likely = self._in_flight(min(_latency_s(output_tokens), SAFE_AGE_NS / NS_PER_S))
            likely = min(likely, settings.max_concurrency or math.inf, MAX_WARM * partition.count)
        count = partition.share(max(sure, math.ceil(likely)))
        return min(count, max_connections(settings))

    def _sure(self) -> int:
        """Return how many requests are sure to be in flight at once: those of a burst up to the
        cap, else one.
        """
        sessions = self.schedule.sessions
        at_once = self.settings.max_concurrency or sessions if self.schedule.duration_ns == 0 else 1
        return min(at_once, sessions)

    def _in_flight(self, latency_s: float) -> float:
        """Return how many requests are likely in flight at once if each takes `latency_s`,
        without the cap.
        """
        rate = self.settings.ramp_up_end_rps or self.schedule.rate
        return min(rate * latency_s, self.schedule.sessions)

    def _lacking(self, needed: int) -> tuple[str, str] | None:
        """Return problem and remedy where a run cannot have `needed` connections; None where it
        can.
        """
        settings = self.settings
        partition = self.partition
        hosts = _hosts(self.settings)
        by_ports = _pairs(settings) * machine.max_connections_by_ports()
        workers = int(settings.workers)
        # Where machines share a run, one makes its part.
        here = math.ceil(needed * workers / max(workers, partition.count))
        if here > by_ports:
            part = f"for its part ({here}) " if here < needed else ""
            servers = "one server" if len(hosts) == 1 else f"{len(hosts)} servers"
            widen = 'widen their range with `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`'
            remedy = (
                f"give further addresses of this machine with {source_address.FLAG}, or {widen}"
            )
            return f"{part}this machine's local ports allow {by_ports} to {servers}", remedy
        share = partition.share(needed)
        allowed = max_connections(settings)
        if share > allowed:
            process = (
                "this process" if partition.count == 1 else f"each of {partition.count} processes"
            )
            remedy = (
                f"raise the limit with `ulimit -n {share + 1000}`, as root if need be "
                "(`loadgen doctor` says more)"
            )
            return f"{process} may have {allowed}", remedy
        return None


def max_connections(settings: RunSettings) -> int:
    """Return how many connections each process of a run may have to all its servers."""
    return machine.max_connections(_pairs(settings), int(settings.workers))


def _latency_s(output_tokens: float) -> float:
    """Guess how long a request for this many tokens takes; 0 tokens: not known."""
    return GUESSED_TTFT_S + (output_tokens or GUESSED_TOKENS) * GUESSED_TPOT_S


def _pairs(settings: RunSettings) -> int:
    """Count the pairs of an address of ours and one of a server: each pair has all local ports."""
    addresses = source_address.parse(settings.source_address)
    return sum(
        source_address.count_addresses(addresses, host) for host in _hosts(settings).values()
    )


def _hosts(settings: RunSettings) -> dict[str, str]:
    """Return the host that connections reach, by host and port: of every server, or of its
    proxy.
    """
    hosts = {}
    for server in settings.apart():
        route = target.route(server)
        if route.unix_socket is not None:  # it needs no ports, of which loopback has the most
            return {"": "127.0.0.1"}
        parts = urlsplit(route.proxy or target.base_url(server))
        hosts[parts.netloc.rpartition("@")[2]] = parts.hostname or ""
    return hosts

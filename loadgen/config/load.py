"""Settings of the load: arrivals, concurrency, seeds, connections, timeouts, limits on the
result, and prefix cache.
"""

import math
from functools import partial
from typing import Literal, get_args

from loadgen.config.load_profile import CONCURRENCY, MAX_IN_FLIGHT, MAX_RATE, LoadProfile
from loadgen.config.option import (
    ABOVE_0,
    COMPAT,
    CONNECTIONS,
    EVERYDAY,
    FIRST,
    FROM_0,
    FROM_1,
    JUDGEMENT,
    LOAD,
    POSITIVE,
    SECONDS,
    SHARE,
    SHARES,
    Form,
    Range,
    options_about,
    settings_class,
)
from loadgen.config.slo import StopCondition, parse_goodput
from loadgen.config.slo import parse as parse_slo
from loadgen.config.user_behavior import EarlyEnd, Retry
from loadgen.core.outcome import Outcome
from loadgen.errors import setting
from loadgen.util import source_address

SeedPurpose = Literal["arrivals", "prompts", "order"]
SEEDS: tuple[SeedPurpose, ...] = get_args(SeedPurpose)
SEED_FIELDS = ("seed", *(f"seed_{purpose}" for purpose in SEEDS))
ALL_PROMPTS = -1  # value of --num-prompts: as many as the data set has
# A command takes several values of these, for one run each.
SWEPT = ("request_rate", "max_concurrency")
WARMUP_PROMPTS = 256  # are sent in turn for the time of --warmup
# Fields that name a share of requests that the client itself ends: with which outcome and detail.
EARLY_ENDS = {"disconnect": (Outcome.DISCONNECTED, "the user left")}
SENDS = "says itself when requests are sent"  # what a kind of load does, which excludes others
MAX_DURATION_S = 30 * 86400.0
MAX_REQUESTS = 50_000_000
MAX_WARMUPS = 1_000_000
MAX_PROBE_RATE = 1e3  # each waits for the one before it
FIRST_TOKEN_S = 600.0  # limit of searches and studies, beyond the longest queue that answers
RATES = Range(
    f"a number above 0, up to {MAX_RATE:,.0f} requests/s, or inf", ABOVE_0, MAX_RATE, math.inf
)
IN_FLIGHT = Range(f"1 to {MAX_IN_FLIGHT:,}", 1, MAX_IN_FLIGHT)
SEED = Range("0 or more, and less than 2**63", 0, (1 << 63) - 1)
AxisName = Literal["rate", "concurrency"]
AXES: tuple[AxisName, ...] = get_args(AxisName)  # their names, as what a sweep or search varies
CacheProtocol = Literal["as-is", "cold", "salted", "warm"]
AS_IS, COLD, SALTED, WARM = get_args(CacheProtocol)
CACHE = setting.cache
connection_option = options_about(CONNECTIONS)
judgement_option = options_about(JUDGEMENT)
load_option = options_about(LOAD)


@settings_class
class LoadSettings:
    """Fields of the load, with the names and meanings of `vllm bench serve`.

    Times are seconds, rates requests/s.
    """

    request_rate: float = load_option(
        math.inf,
        "requests per second; several values, such as 1,2,4, mean one run each (inf: all at once)",
        alias="--rate",
        metavar="RPS",
        tier=FIRST,
        range=RATES,
    )
    burstiness: float = load_option(
        1.0,
        "shape of the gamma-distributed gaps between requests: 1 is Poisson, below 1 burstier, "
        "inf evenly spaced",
        metavar="SHAPE",
        tier=EVERYDAY,
        range=POSITIVE,
    )
    max_concurrency: int | None = load_option(
        None,
        "maximum requests in flight; the wait for a slot is measured; several values, such as "
        "1,2,4, mean one run each",
        metavar="N",
        tier=FIRST,
        range=IN_FLIGHT,
    )
    num_prompts: int | None = load_option(
        None,
        "number of requests; of sessions, all turns together; -1: all prompts of the data set; "
        "without, 1000 or what --duration allows, and 100 if no load is given",
        metavar="N",
        tier=FIRST,
        range=Range(
            f"1 to {MAX_REQUESTS:,}, or -1 for all prompts of a file",
            1,
            MAX_REQUESTS,
            besides=ALL_PROMPTS,
        ),
    )
    duration: float | None = load_option(
        None,
        "how long to send requests, such as 30s or 5m",
        unit=SECONDS,
        tier=FIRST,
        range=Range(f"a number above 0, up to {MAX_DURATION_S:,.0f} s", ABOVE_0, MAX_DURATION_S),
    )
    ramp_up_strategy: Literal["linear", "exponential"] | None = load_option(
        None, "increase the rate over the run", tier=COMPAT, excludes=("request_rate",), why=SENDS
    )
    ramp_up_start_rps: float | None = load_option(
        None,
        "rate at the start of the ramp",
        metavar="RPS",
        tier=COMPAT,
        range=FROM_0,
        needs="ramp_up_strategy",
    )
    ramp_up_end_rps: float | None = load_option(
        None,
        "rate at the end of the ramp",
        metavar="RPS",
        tier=COMPAT,
        range=Range(f"0 to {MAX_RATE:,.0f} requests/s", 0, MAX_RATE),
        needs="ramp_up_strategy",
    )
    rate_profile: str | None = load_option(
        None,
        "a rate that changes: phases such as 10@60s,10-50@30s,50@60s, 10~50/60s@5m (a wave) or "
        "50/5s+10s@5m (on and off), or a CSV file of seconds and rates",
        metavar="PHASES|FILE",
        listed=True,
        tier=EVERYDAY,
        excludes=(
            "request_rate",
            "ramp_up_strategy",
            "num_prompts",
            "users",
            "concurrency_profile",
            "duration",
        ),
        why=SENDS,
    )
    concurrency_profile: str | None = load_option(
        None,
        "a number of requests in flight that changes: phases such as 16@60s,64@30s,16@60s, ramps "
        "and waves as in --rate-profile, or a CSV file of seconds and numbers",
        metavar="PHASES|FILE",
        listed=True,
        excludes=(
            "request_rate",
            "ramp_up_strategy",
            "burstiness",
            "num_prompts",
            "users",
            "duration",
            "max_concurrency",
        ),
        why=SENDS,
    )
    users: int | None = load_option(
        None,
        "number of users, each of whom sends a request, waits for the answer, and thinks for "
        "--think-time before the next one",
        alias="--num-users",
        metavar="N",
        tier=EVERYDAY,
        range=IN_FLIGHT,
        excludes=("request_rate", "ramp_up_strategy", "burstiness", "max_concurrency"),
        why=SENDS,
    )
    classes: tuple[str, ...] = load_option(
        (),
        "a class of requests, such as chat:share=0.8,priority=0,random_input_len=200; repeat the "
        "flag for each class; keys: share or rate, priority, model, header, slo, goodput, and "
        "flags of the data set",
        alias="--class",
        metavar="NAME:KEY=VALUE,...",
        tier=EVERYDAY,
    )
    disconnect: str | None = load_option(
        None,
        "share of requests whose client closes the connection early, after tokens or a time: "
        "5%@tokens=10 or 5%@after=200ms; they count in no latency and no error rate",
        metavar="SHARE@WHEN",
        parse=partial(EarlyEnd.parse, "disconnect"),
    )
    retry: str | None = load_option(
        None,
        "HTTP statuses after which a request is sent again, such as 429,503 or 429@attempts=5 (3 "
        "attempts); waits as long as Retry-After says, else 0.5 s and longer each time; latencies "
        "from due include the waits",
        metavar="STATUSES",
        listed=True,
        parse=Retry.parse,
    )
    num_warmups: int = load_option(
        0,
        "warm-up requests before the clock starts; not measured",
        metavar="N",
        tier=EVERYDAY,
        range=Range(f"0 to {MAX_WARMUPS:,}", 0, MAX_WARMUPS),
        excludes=("warmup",),
    )
    warmup: float | None = load_option(
        None,
        "send the load for this time before the clock starts; not measured",
        unit=SECONDS,
        tier=EVERYDAY,
        range=Range(f"a time above 0, up to {MAX_DURATION_S:,.0f} s", ABOVE_0, MAX_DURATION_S),
    )
    warmup_prompt: Literal["other", "first"] = load_option(
        "other",
        "prompts of warm-up and test requests: other prompts than those of the run, or always the "
        "run's first prompt, as in `vllm bench serve`",
    )
    probe_request_rate: float = load_option(
        0.0,
        "probes per second, sent in addition to the load: requests for one token, whose latency "
        "is reported separately",
        metavar="RPS",
        tier=COMPAT,
        range=Range(f"0 to {MAX_PROBE_RATE:g} requests/s", 0, MAX_PROBE_RATE),
    )
    ready_check_timeout_sec: float = load_option(
        0.0,
        "seconds to wait for the server and for one successful test request (0: no wait, no test)",
        unit=SECONDS,
        range=FROM_0,
    )
    seed: int = load_option(0, "seed of all random choices", tier=EVERYDAY, range=SEED)
    seed_arrivals: int | None = load_option(
        None, "seed of the due times (--seed)", metavar="SEED", range=SEED
    )
    seed_prompts: int | None = load_option(
        None, "seed of the prompts' contents and lengths (--seed)", metavar="SEED", range=SEED
    )
    seed_order: int | None = load_option(
        None, "seed of the prompts' order (--seed)", metavar="SEED", range=SEED
    )

    warm_connections: str = connection_option(
        "auto",
        "connections to open before the clock starts: auto, N or 0",
        metavar="auto|N",
        form=Form("auto|[0-9]+", "invalid number {!r}", "write auto, or a number from 0"),
    )
    source_address: str | None = connection_option(
        None,
        "local addresses that connections use in turn",
        metavar="A,B",
        parse=source_address.parse,
    )
    connect_timeout: float = connection_option(
        60.0, "seconds to open a connection", unit=SECONDS, range=FROM_0
    )
    first_token_timeout: float = connection_option(
        0.0,
        "seconds from sending a request to its first token (0: no limit)",
        unit=SECONDS,
        range=FROM_0,
    )
    stall_timeout: float = connection_option(
        600.0,
        "seconds without data after an answer has begun (600; 0: no limit)",
        unit=SECONDS,
        range=FROM_0,
    )
    liveness_timeout: float = connection_option(
        30.0,
        "seconds without any token until the server is asked; one that hangs ends the run "
        "(30; 0: never)",
        unit=SECONDS,
        range=FROM_0,
    )
    timeout: float = connection_option(
        21600.0,
        "seconds for a whole request (21600; 0: no limit)",
        unit=SECONDS,
        tier=EVERYDAY,
        range=FROM_0,
    )

    latency_from: Literal["due", "sent"] = judgement_option(
        "due", "start of loadgen's own latencies: when a request is due, or sent"
    )
    goodput: tuple[str, ...] = judgement_option(
        (),
        "limits in ms for a good request: ttft:200 tpot:50 e2el:5000",
        metavar="METRIC:MS",
        parse=parse_goodput,
        tier=EVERYDAY,
    )
    slo: str | None = judgement_option(
        None,
        'limits, such as "ttft_p99<500ms,error_rate<1%"; repeatable',
        metavar="LIMITS",
        parse=parse_slo,
        listed=True,
        tier=FIRST,
    )
    stop_when: str | None = judgement_option(
        None,
        'conditions that end the run, such as "ttft_p99>2s over 10s,errors>100"; what was '
        "measured until then is "
        "reported, with exit code 9; repeatable",
        metavar="CONDITIONS",
        parse=StopCondition.parse,
        listed=True,
        tier=EVERYDAY,
    )
    max_error_rate: float = judgement_option(
        0.01,
        "exit with code 5 if a larger share of the requests failed, on the server or the client",
        unit=SHARES,
        tier=EVERYDAY,
        range=SHARE,
    )
    keep_going: bool = judgement_option(
        False, "continue the run when the server refuses every connection for 5 s"
    )
    allow_few: bool = judgement_option(
        False, "judge the SLO even if there are too few requests for its percentiles"
    )
    strict: bool = judgement_option(
        False,
        "failed notes also make the run SUSPECT; exit with code 4 if it is SUSPECT",
        tier=EVERYDAY,
    )

    @property
    def warmup_requests(self) -> int:
        """How many different requests warm the server up."""
        if self.warmup is None:
            return self.num_warmups
        return math.ceil(min(self.request_rate * self.warmup, WARMUP_PROMPTS))

    @property
    def early_ends(self) -> list[EarlyEnd]:
        """The shares of requests that the client itself ends."""
        texts = {name: getattr(self, name) for name in EARLY_ENDS}
        return [EarlyEnd.parse(name, text) for name, text in texts.items() if text is not None]

    @property
    def rate_changes(self) -> bool:
        """Whether the rate changes during the run: a ramp or a profile."""
        return self.ramp_up_strategy is not None or self.rate_profile is not None

    @property
    def load_profile(self) -> LoadProfile | None:
        """The profile of the rate, or of the concurrency; None without one.

        Raises:
            BadInput: It is invalid.
        """
        if self.rate_profile is not None:
            return LoadProfile.parse(self.rate_profile)
        if self.concurrency_profile is not None:
            return LoadProfile.parse(self.concurrency_profile, CONCURRENCY)
        return None


@settings_class
class CacheSettings:
    """Fields of the prefix cache."""

    cache: CacheProtocol = load_option(
        "as-is",
        "state of the server's prefix cache when the clock starts; cold: emptied by a call to the "
        "server; salted: no prompt begins like one of an earlier run; warm: each distinct prefix, "
        "or prompt, was sent once",
        tier=EVERYDAY,
    )
    cache_block_size: int | None = load_option(
        None,
        "tokens in a block of the prefix cache (from the server's metrics, or else 16)",
        metavar="TOKENS",
        range=FROM_1,
    )

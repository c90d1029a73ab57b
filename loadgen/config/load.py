"""Settings of the load: arrivals, concurrency, seeds, connections, timeouts, limits on the
result, and prefix cache.
"""

import math
from typing import Literal, get_args

from loadgen.config.load_profile import CONCURRENCY, LoadProfile
from loadgen.config.option import (
    COMPAT,
    CONNECTIONS,
    EVERYDAY,
    FIRST,
    JUDGEMENT,
    LOAD,
    option,
    settings_class,
)
from loadgen.core.outcome import Outcome

SeedPurpose = Literal["arrivals", "prompts", "order"]
SEEDS: tuple[SeedPurpose, ...] = get_args(SeedPurpose)
SEED_FIELDS = ("seed", *(f"seed_{purpose}" for purpose in SEEDS))
ALL_PROMPTS = -1  # value of --num-prompts: as many as the data set has
# A command takes several values of these, for one run each.
SWEPT = ("request_rate", "max_concurrency")
WARMUP_PROMPTS = 256  # are sent in turn for the time of --warmup
# Fields that name a share of requests that the client itself ends: with which outcome and detail.
EARLY_ENDS = {"disconnect": (Outcome.DISCONNECTED, "the user left")}
# What a kind of load excludes, since it says itself when requests are sent, how many, or for how
# long.
EXCLUDED = {
    "rate_profile": (
        *("request_rate", "ramp_up_strategy", "num_prompts", "users"),
        *("concurrency_profile", "duration"),
    ),
    "concurrency_profile": (
        *("request_rate", "ramp_up_strategy", "burstiness", "num_prompts"),
        *("users", "duration", "max_concurrency"),
    ),
    "users": ("request_rate", "ramp_up_strategy", "burstiness", "max_concurrency"),
    "ramp_up_strategy": ("request_rate",),
}
AxisName = Literal["rate", "concurrency"]
AXES: tuple[AxisName, ...] = get_args(AxisName)  # their names, as what a sweep or search varies
CacheProtocol = Literal["as-is", "cold", "salted", "warm"]
AS_IS, COLD, SALTED, WARM = get_args(CacheProtocol)
CACHE = "--cache"


@settings_class
class LoadSettings:
    """Fields of the load, with the names and meanings of `vllm bench serve`.

    Times are seconds, rates requests/s.
    """

    request_rate: float = option(
        math.inf,
        LOAD,
        "requests per second; several values, such as 1,2,4, mean one run each (inf: all at once)",
        alias="--rate",
        metavar="RPS",
        tier=FIRST,
    )
    burstiness: float = option(
        1.0,
        LOAD,
        "shape of the gamma-distributed gaps between requests: 1 is Poisson, below 1 burstier, "
        "inf evenly spaced",
        metavar="SHAPE",
        tier=EVERYDAY,
    )
    max_concurrency: int | None = option(
        None,
        LOAD,
        "maximum requests in flight; the wait for a slot is measured; several values, such as "
        "1,2,4, mean one run each",
        metavar="N",
        tier=FIRST,
    )
    num_prompts: int | None = option(
        None,
        LOAD,
        "number of requests; of sessions, all turns together; -1: all prompts of the data set; "
        "without, 1000 or what --duration allows, and 100 if no load is given",
        metavar="N",
        tier=FIRST,
    )
    duration: float | None = option(
        None, LOAD, "how long to send requests, such as 30s or 5m", metavar="TIME", tier=FIRST
    )
    ramp_up_strategy: Literal["linear", "exponential"] | None = option(
        None, LOAD, "increase the rate over the run", tier=COMPAT
    )
    ramp_up_start_rps: float | None = option(
        None, LOAD, "rate at the start of the ramp", metavar="RPS", tier=COMPAT
    )
    ramp_up_end_rps: float | None = option(
        None, LOAD, "rate at the end of the ramp", metavar="RPS", tier=COMPAT
    )
    rate_profile: str | None = option(
        None,
        LOAD,
        "a rate that changes: phases such as 10@60s,10-50@30s,50@60s or 10~50/60s@5m (a wave), or "
        "a CSV file of seconds and rates",
        metavar="PHASES|FILE",
        listed=True,
        tier=EVERYDAY,
    )
    concurrency_profile: str | None = option(
        None,
        LOAD,
        "a number of requests in flight that changes: phases such as 16@60s,64@30s,16@60s, ramps "
        "and waves as in --rate-profile, or a CSV file of seconds and numbers",
        metavar="PHASES|FILE",
        listed=True,
    )
    users: int | None = option(
        None,
        LOAD,
        "number of users, each of whom sends a request, waits for the answer, and thinks for "
        "--think-time before the next one",
        alias="--num-users",
        metavar="N",
        tier=EVERYDAY,
    )
    classes: tuple[str, ...] = option(
        (),
        LOAD,
        "a class of requests, such as chat:share=0.8,priority=0,random_input_len=200; repeat the "
        "flag for each class; keys: share or rate, priority, model, header, slo, goodput, and "
        "flags of the data set",
        alias="--class",
        metavar="NAME:KEY=VALUE,...",
        tier=EVERYDAY,
    )
    disconnect: str | None = option(
        None,
        LOAD,
        "share of requests whose client closes the connection early, after tokens or a time: "
        "5%@tokens=10 or 5%@after=200ms; they count in no latency and no error rate",
        metavar="SHARE@WHEN",
    )
    retry: str | None = option(
        None,
        LOAD,
        "HTTP statuses after which a request is sent again, such as 429,503 or 429@attempts=5 (3 "
        "attempts); waits as long as Retry-After says, else 0.5 s and longer each time; latencies "
        "from due include the waits",
        metavar="STATUSES",
        listed=True,
    )
    num_warmups: int = option(
        0,
        LOAD,
        "warm-up requests before the clock starts; not measured",
        metavar="N",
        tier=EVERYDAY,
    )
    warmup: float | None = option(
        None,
        LOAD,
        "send the load for this time before the clock starts; not measured",
        metavar="TIME",
        tier=EVERYDAY,
    )
    warmup_prompt: Literal["other", "first"] = option(
        "other",
        LOAD,
        "prompts of warm-up and test requests: other prompts than those of the run, or always the "
        "run's first prompt, as in `vllm bench serve`",
    )
    probe_request_rate: float = option(
        0.0,
        LOAD,
        "probes per second, sent in addition to the load: requests for one token, whose latency "
        "is reported separately",
        metavar="RPS",
        tier=COMPAT,
    )
    ready_check_timeout_sec: float = option(
        0.0,
        LOAD,
        "seconds to wait for the server and for one successful test request (0: no wait, no test)",
        metavar="TIME",
    )
    seed: int = option(0, LOAD, "seed of all random choices", tier=EVERYDAY)
    seed_arrivals: int | None = option(None, LOAD, "seed of the due times (--seed)", metavar="SEED")
    seed_prompts: int | None = option(
        None, LOAD, "seed of the prompts' contents and lengths (--seed)", metavar="SEED"
    )
    seed_order: int | None = option(
        None, LOAD, "seed of the prompts' order (--seed)", metavar="SEED"
    )

    warm_connections: str = option(
        "auto",
        CONNECTIONS,
        "connections to open before the clock starts: auto, N or 0",
        metavar="auto|N",
    )
    source_address: str | None = option(
        None, CONNECTIONS, "local addresses that connections use in turn", metavar="A,B"
    )
    connect_timeout: float = option(
        60.0, CONNECTIONS, "seconds to open a connection", metavar="TIME"
    )
    first_token_timeout: float = option(
        0.0,
        CONNECTIONS,
        "seconds from sending a request to its first token (0: no limit)",
        metavar="TIME",
    )
    stall_timeout: float = option(
        600.0,
        CONNECTIONS,
        "seconds without data after an answer has begun (600; 0: no limit)",
        metavar="TIME",
    )
    timeout: float = option(
        21600.0,
        CONNECTIONS,
        "seconds for a whole request (21600; 0: no limit)",
        metavar="TIME",
        tier=EVERYDAY,
    )

    latency_from: Literal["due", "sent"] = option(
        "due", JUDGEMENT, "start of loadgen's own latencies: when a request is due, or sent"
    )
    goodput: tuple[str, ...] = option(
        (),
        JUDGEMENT,
        "limits in ms for a good request: ttft:200 tpot:50 e2el:5000",
        metavar="METRIC:MS",
        tier=EVERYDAY,
    )
    slo: str | None = option(
        None,
        JUDGEMENT,
        'limits, such as "ttft_p99<500ms,error_rate<1%"; repeatable',
        metavar="LIMITS",
        listed=True,
        tier=FIRST,
    )
    stop_when: str | None = option(
        None,
        JUDGEMENT,
        'conditions that end the run, such as "ttft_p99>2s over 10s,errors>100"; what was '
        "measured until then is "
        "reported, with exit code 9; repeatable",
        metavar="CONDITIONS",
        listed=True,
        tier=EVERYDAY,
    )
    max_error_rate: float = option(
        0.01,
        JUDGEMENT,
        "exit with code 5 if a larger share of the requests failed, on the server or the client",
        metavar="SHARE",
        tier=EVERYDAY,
    )
    keep_going: bool = option(
        False, JUDGEMENT, "continue the run when the server refuses every connection for 5 s"
    )
    allow_few: bool = option(
        False, JUDGEMENT, "judge the SLO even if there are too few requests for its percentiles"
    )
    strict: bool = option(
        False,
        JUDGEMENT,
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

    cache: CacheProtocol = option(
        "as-is",
        LOAD,
        "state of the server's prefix cache when the clock starts; cold: emptied by a call to the "
        "server; salted: no prompt begins like one of an earlier run; warm: each distinct prefix, "
        "or prompt, was sent once",
        tier=EVERYDAY,
    )
    cache_block_size: int | None = option(
        None,
        LOAD,
        "tokens in a block of the prefix cache (from the server's metrics, or else 16)",
        metavar="TOKENS",
    )

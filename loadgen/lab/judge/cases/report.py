"""Cases of the report: what follows from the numbers beside it."""

from loadgen.engines.sim.http1 import error_body, whole
from loadgen.lab.judge.case import Ask, Case, Load, Move, Plan, Play, add, steady

LATENCIES = ("ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms", "e2el_mean_ms")
RATES = ("output_rate", "request_rate", "output_tokens", "completed")


def fails_slowly(ask: Ask) -> Plan:
    """Every second request fails after 800 ms."""
    if ask.number % 2:
        return Plan([Move(800.0, whole(500, error_body("no", 500)))], ok=False)
    return steady(ask)


def fails_at_once(ask: Ask) -> Plan:
    """Every second request fails at once."""
    if ask.number % 2:
        return Plan([Move(0.0, whole(500, error_body("no", 500)))], ok=False)
    return steady(ask, first_ms=300)


def all_fail(ask: Ask) -> Plan:
    """Return an error."""
    return Plan([Move(0.0, whole(500, error_body("no", 500)))], ok=False)


def one_slow(ask: Ask) -> Plan:
    """The third answer begins after 600 ms, the others after 50 ms."""
    return steady(ask, first_ms=600 if ask.number == 2 else 50)


def different_lengths(ask: Ask) -> Plan:
    """Answers with an odd number have gaps of 40 ms, the others of 5 ms."""
    return steady(ask, gap_ms=40 if ask.number % 2 else 5)


def _report(
    name: str, does: str, source: str, play: Play, figures: tuple[str, ...], load: Load
) -> None:
    add(Case(name, "report", does, source, play, figures, load))


_report(
    "failures-slow",
    "Half of the requests fail after 800 ms: their times are no latencies.",
    "InferenceX#357 (D13)",
    fails_slowly,
    (*LATENCIES, "failed"),
    Load(20, 20),
)
_report(
    "failures-fast",
    "Half of the requests fail at once: their times are no latencies.",
    "gpustack#1677 (D13)",
    fails_at_once,
    (*LATENCIES, "failed"),
    Load(20, 20),
)
_report(
    "all-fail",
    "All requests fail: there is no mean, and 0 is none.",
    "vllm-bench, mean of nothing (D22)",
    all_fail,
    ("completed", "failed", "ttft_mean_ms", "tpot_mean_ms"),
    Load(),
)
_report(
    "few-values",
    "Of five answers one begins late: what p50 and p99 of five values are.",
    "guidellm, percentiles of 2025-12-07; endpoints#423 (D44)",
    one_slow,
    ("ttft_p50_ms", "ttft_p99_ms", "ttft_mean_ms"),
    Load(5, 5),
)
_report(
    "throughput",
    "Tokens per second are tokens by time.",
    "sglang#38868, endpoints#372 (D35)",
    steady,
    RATES,
    Load(40, 40),
)
_report(
    "peak",
    "No more can be in flight than were sent at once.",
    "inference-perf#320 (D8)",
    steady,
    ("peak_in_flight",),
    Load(20, 20),
)
_report(
    "unequal-requests",
    "Half of the answers have gaps of 40 ms, half of 5 ms: a mean of requests.",
    "guidellm#1144 (D23)",
    different_lengths,
    ("tpot_mean_ms", "itl_p50_ms", "itl_p99_ms", "e2el_mean_ms"),
    Load(),
)
_report(
    "tail",
    "The last answer takes two seconds: throughput counts that time.",
    "endpoints#143, inference-perf#245 (D29)",
    lambda ask: steady(ask, gap_ms=100 if ask.number == 39 else 5),
    RATES,
    Load(40, 40),
)

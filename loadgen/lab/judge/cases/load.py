"""Cases of load: whether what was asked is what came."""

import math

from loadgen.lab.judge.case import Ask, Case, Load, Plan, add, steady

SOURCE_CO = "G. Tene, How not to measure latency; HdrHistogram"
STALL_FROM, STALL_TO, STALL_MS = 20, 40, 800.0


def _load(name: str, does: str, source: str, load: Load, figures: tuple[str, ...]) -> None:
    add(Case(name, "load", does, source, steady, figures, load))


def stall(ask: Ask) -> Plan:
    """Requests 20 to 39 wait for 800 ms."""
    return steady(ask, first_ms=STALL_MS if STALL_FROM <= ask.number < STALL_TO else 20, gap_ms=5)


_load(
    "rate-20",
    "40 requests at 20 per second.",
    "evalscope#1501 (D29)",
    Load(40, 20),
    ("sent", "sent_rate", "request_rate"),
)
_load(
    "rate-200",
    "400 requests at 200 per second.",
    "evalscope#1366, #1367 (D18)",
    Load(400, 200, output_tokens=2),
    ("sent", "sent_rate", "completed"),
)
_load(
    "burst",
    "60 requests at once.",
    "vllm bench serve, --request-rate inf",
    Load(60, math.inf),
    ("sent", "sent_spread_ms", "sent_peak"),
)
_load(
    "cap",
    "40 requests, at most 4 in flight.",
    "inference-perf#320, #319 (D8)",
    Load(40, math.inf, 4),
    ("sent", "sent_peak", "peak_in_flight"),
)
_load(
    "one-at-a-time",
    "10 requests, one after the other.",
    "inference-perf#320 (D8)",
    Load(10, math.inf, 1),
    ("sent", "sent_peak", "request_rate"),
)
_load(
    "count",
    "37 requests: a number that no number of workers divides.",
    "guidellm#620 (D28)",
    Load(37, 40),
    ("sent", "completed", "output_tokens"),
)
add(
    Case(
        "stalled-server",
        "load",
        "Stalls for 800 ms; later requests must still be sent when they are due.",
        SOURCE_CO,
        stall,
        ("sent_rate", "ttft_mean_ms", "ttft_p99_ms"),
        Load(60, 40, output_tokens=4),
    )
)
add(
    Case(
        "threads",
        "load",
        "Has 4 threads, each held by a connection while that is open.",
        "an HTTP server with a thread per connection",
        lambda ask: steady(ask, first_ms=20, gap_ms=5),
        ("sent", "completed", "failed"),
        Load(24, math.inf, 4, output_tokens=4),
        threads=4,
    )
)

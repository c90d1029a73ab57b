"""Cases of time: when tokens came."""

import math
from dataclasses import replace

from loadgen.engines.sim.http1 import LAST_CHUNK
from loadgen.lab.judge.case import (
    FIRST_MS,
    GAP_MS,
    Ask,
    Case,
    Disturbance,
    Load,
    Plan,
    Play,
    add,
    ends,
    good,
    paced,
    steady,
    streamed,
)

TIMES = ("ttft_mean_ms", "ttft_p99_ms", "tpot_mean_ms", "itl_p50_ms", "itl_p99_ms", "e2el_mean_ms")
GAPS = ("ttft_mean_ms", "tpot_mean_ms", "e2el_mean_ms", "output_tokens")


def _time(
    name: str,
    does: str,
    source: str,
    play: Play,
    figures: tuple[str, ...] = TIMES,
    load: Load | None = None,
    host: str = "127.0.0.1",
    disturbance: Disturbance = Disturbance.NONE,
) -> None:
    case = Case(name, "time", does, source, play, figures, load or Load())
    add(replace(case, host=host, disturbance=disturbance))


def _events_at(ask: Ask, times_ms: list[float]) -> Plan:
    """Return a correct answer whose tokens are due at these times."""
    answer = good(ask)
    events = [(at, token, 1) for at, token in zip(times_ms, answer.tokens, strict=True)]
    events.insert(0, (times_ms[0], answer.role, 0))
    return streamed(events, *ends(ask, answer))


def role_first(ask: Ask) -> Plan:
    """The role comes at once, the first token much later."""
    answer = good(ask)
    return streamed(
        [(0.0, answer.role, 0), *paced(answer.tokens, first_ms=200)], *ends(ask, answer)
    )


def uneven(ask: Ask) -> Plan:
    """Gaps of 2 and 30 ms in turn."""
    gaps = [2.0 if i % 2 else 30.0 for i in range(ask.request.tokens - 1)]
    return _events_at(ask, [FIRST_MS + sum(gaps[:i]) for i in range(ask.request.tokens)])


def paused(ask: Ask) -> Plan:
    """A pause of 300 ms in the middle."""
    middle = ask.request.tokens // 2
    return _events_at(
        ask,
        [FIRST_MS + i * GAP_MS + (300 if i >= middle else 0) for i in range(ask.request.tokens)],
    )


def one_write(ask: Ask) -> Plan:
    """All of the answer in one write."""
    answer = good(ask)
    body = b"".join([answer.role, *answer.tokens, *ends(ask, answer)])
    return streamed([(200.0, body, len(answer.tokens))])


def clumps(ask: Ask) -> Plan:
    """A token is made each 10 ms; a gateway lets ten go at a time."""
    answer = good(ask)
    size = 10
    groups = [answer.tokens[i : i + size] for i in range(0, len(answer.tokens), size)]
    events = [
        (FIRST_MS + (i + 1) * size * GAP_MS, b"".join(g), len(g)) for i, g in enumerate(groups)
    ]
    return streamed(events, *ends(ask, answer))


def byte_writes(ask: Ask) -> Plan:
    """Each event in two writes, cut inside its JSON; the second one completes it."""
    answer = good(ask)
    events = []
    for at_ms, data, tokens in paced(answer.tokens, gap_ms=20):
        events += [(at_ms - 5, data[:9], 0), (at_ms, data[9:], tokens)]
    return streamed(events, *ends(ask, answer))


def late_usage(ask: Ask) -> Plan:
    """The usage and the end come 200 ms after the last token and the finish reason."""
    answer = good(ask)
    events = paced(answer.tokens)
    events.append((events[-1][0], answer.finish, 0))
    return streamed(events, answer.usage, answer.done, end_after_ms=200)


def late_close(ask: Ask) -> Plan:
    """The body ends 200 ms after [DONE]."""
    answer = good(ask)
    events = paced(answer.tokens)
    events.append((events[-1][0], b"".join(ends(ask, answer)), 0))
    return streamed(events, end=LAST_CHUNK, end_after_ms=200)


_time("steady", "Writes a token each 10 ms, the first after 50 ms.", "control", steady)
_time(
    "streams-100",
    "The same for 100 streams at once.",
    "vllm-project/vllm bench README; peers compared in docs/peers.md",
    lambda ask: steady(ask, gap_ms=25),
    load=Load(100, math.inf, 100),
)
_time(
    "streams-1000",
    "The same for 1,000 streams at once, a token each 250 ms.",
    "vllm-bench's overhead test",
    lambda ask: steady(ask, first_ms=1000, gap_ms=250),
    load=Load(1000, math.inf, 1000, output_tokens=8),
)
_time(
    "role-first",
    "Sends the role at once, and the first token after 200 ms.",
    "kubernetes-sigs/inference-perf#452, #392 (D4)",
    role_first,
)
_time(
    "fast-tokens",
    "Writes a token each 2 ms.",
    "evalscope#1366 (timers of 1 ms)",
    lambda ask: steady(ask, gap_ms=2),
)
_time("uneven-gaps", "Gaps of 2 and 30 ms in turn.", "guidellm#1145 (D23)", uneven)
_time("pause", "Pauses for 300 ms in the middle.", "vllm#40076 (preemption)", paused)
_time(
    "one-write",
    "Sends all of the answer in one write after 200 ms.",
    "tenstorrent/tt-inference-server#4681 (D5)",
    one_write,
    ("ttft_mean_ms", "e2el_mean_ms", "output_tokens"),
)
_time(
    "clumps",
    "A gateway lets ten tokens go at a time.",
    "dstackai/dstack#4269 (dialect 18, D40)",
    clumps,
    ("ttft_mean_ms", "e2el_mean_ms", "output_tokens"),
)
_time(
    "split-events",
    "Cuts each event inside its JSON; the rest follows after 5 ms.",
    "vllm-bench streaming.rs (D3)",
    byte_writes,
)
_time(
    "late-usage",
    "Sends the usage 200 ms after the last token.",
    "vllm-bench, vLLM until 0.32 (D4)",
    late_usage,
    GAPS,
)
_time(
    "late-close",
    "Ends the body 200 ms after [DONE].",
    "maximhq/bifrost#6784 (dialect 04)",
    late_close,
    GAPS,
)
_time(
    "one-token",
    "Answers are one token long: there is no time per output token.",
    "vllm-omni#6696 (D22)",
    steady,
    ("ttft_mean_ms", "tpot_mean_ms", "e2el_mean_ms"),
    Load(output_tokens=1),
)
_time(
    "localhost",
    "Listens on 127.0.0.1; the URL says localhost.",
    "drill#126, zig#5555 (dialect 25)",
    steady,
    GAPS,
    host="localhost",
)
_time(
    "client-stopped",
    "All processes of the client are stopped for 200 ms.",
    "G. Tene, How not to measure latency",
    lambda ask: steady(ask, gap_ms=20),
    disturbance=Disturbance.STOPPED,
)
_time(
    "busy-neighbor",
    "A process on each core counts meanwhile.",
    "sglang#40249",
    lambda ask: steady(ask, gap_ms=20),
    disturbance=Disturbance.BUSY,
)

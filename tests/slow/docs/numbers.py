"""The definitions of docs/numbers.md: what each number means; `python -m
tests.slow.docs.numbers` writes them.
"""

import re
from textwrap import fill

from loadgen.core.outcome import Outcome
from loadgen.report.sections import ABOUT, DUE, SENT
from tests.helpers.documents import between, list_item
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "numbers.md"
BEGIN, END = (
    "<!-- numbers: made by python -m tests.slow.docs.numbers -->",
    "<!-- end of numbers -->",
)
# What each printed name means, by group; a page of a run says some of it too.
GROUPS = {
    "Requests": [
        (
            "due",
            f"{DUE.capitalize()}. All due times are drawn before the clock starts. A later turn of "
            "a session is due one think time after the previous answer. In a closed loop a "
            "request is due when a slot is free, or when its user has thought.",
        ),
        (
            "sent",
            f"{SENT.capitalize()}, by the kernel's stamp; without one, just before it is written.",
        ),
        ("ok", ABOUT["requests"]),
        (
            "error rate",
            "Requests that failed on the server, divided by all requests that ended. A turn that "
            "was never sent because an earlier turn had failed counts as failed, although its "
            "outcome is `cancelled`. Requests that were `cancelled` because the run ended first, "
            "and those whose users left (`disconnected`), are not counted.",
        ),
        (
            "output tokens",
            "Tokens of ok requests. They are counted by the first of these that is available: the "
            "server's usage, the token ids or logprobs of the events, --tokenizer (after the run), "
            "one token per event. The report says which.",
        ),
    ],
    "Latencies": [
        ("TTFT", ABOUT["ttft"]),
        ("TTFO", ABOUT["ttfo"]),
        ("TPOT", ABOUT["tpot"]),
        ("ITL", ABOUT["itl"]),
        ("ICL", ABOUT["icl"]),
        ("E2EL", ABOUT["e2el"]),
        (
            "TPOT weighted by tokens",
            "TPOT of all requests together: the sum of their times divided by the sum of their "
            "tokens. A long answer has more weight than a short one.",
        ),
    ],
    "Waits in the client": [
        ("Lag", ABOUT["lag"]),
        ("Wait for a slot", ABOUT["pool_wait"]),
        ("Connect", ABOUT["connect"]),
    ],
    "Rates and totals": [
        (
            "duration",
            "From the first send until the last request has ended. Every throughput is divided by "
            "it, so it includes ramp and tail.",
        ),
        ("request throughput", ABOUT["request_throughput"]),
        ("output throughput", ABOUT["output_throughput"]),
        (
            "total token throughput",
            "Input and output tokens of ok requests per second of the duration.",
        ),
        (
            "uncached input throughput",
            "Input tokens that the server did not have in its prefix cache, per second of the "
            "duration.",
        ),
        ("rate of answers", ABOUT["answer_rate"]),
        (
            "steady output throughput",
            "Output tokens per second without ramp and tail: tokens that arrive between (first "
            "send + p99 of E2EL) and the last send. It is n/a if that interval is shorter than a "
            "second.",
        ),
        (
            "peak output throughput",
            "The maximum number of output tokens in any one second that begins at a multiple of 10 "
            "ms. In a run shorter than a second it is the output throughput of the run.",
        ),
        (
            "peak concurrent requests",
            "The maximum number of requests in flight (sent and not ended) at any instant. It is "
            "exact.",
        ),
        (
            "goodput",
            "Ok requests that meet every --goodput limit, per second of the duration; and their "
            "share of all scheduled requests. A request without a TPOT is judged by the other "
            "limits.",
        ),
        (
            "SLO",
            "The limits that --slo sets for the whole run. A failed request misses every limit on "
            "a latency percentile.",
        ),
    ],
    "The client itself": [
        ("loop stall", ABOUT["loop_stall"]),
        ("GC pause", ABOUT["gc_pause"]),
        (
            "loop busy",
            "The share of the time in which the event loop was busy. Above 70 % it may send late.",
        ),
    ],
}


def definitions() -> str:
    """Each number under its heading, each group under a heading of its own; then the outcomes."""
    groups = [f"## {group}\n\n{_defined(terms)}" for group, terms in GROUPS.items()]
    outcomes = [list_item(_written(f"`{outcome}`: {outcome.about}")) for outcome in Outcome]
    return "\n\n".join([*groups, "## Outcomes", "How a request ended:", "\n".join(outcomes)])


def _defined(terms: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"### {name}\n\n{_wrapped(_written(about))}" for name, about in terms)


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _written(about: str) -> str:
    """In Markdown, of both clocks."""
    return re.sub(r"--[a-z-]+", r"`\g<0>`", about.format(clock="from due, and from sent,"))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, definitions(), END)

"""Token counts: do the counts of the server agree with each other and with the stream?"""

from loadgen.checks.check import Check, inapplicable
from loadgen.metrics.run_data import RunData
from loadgen.util.number_format import percent, plural

COUNTS_DISAGREE = "token counts disagree"
EVENTS_BEYOND = "more events than tokens"
MAX_DISAGREEING = 0.01
# A few events may hold a part of a token, or repeat one.
MAX_SURPLUS = 0.1


def token_counts(run: RunData) -> list[Check]:
    """Check the token counts of ok requests."""
    return [_totals(run), _events(run)]


def _totals(run: RunData) -> Check:
    """Whether prompt and completion tokens are the total."""
    counters, ok = run.snapshot.counters, run.snapshot.ok
    if not counters["usage_requests"]:
        return inapplicable(COUNTS_DISAGREE, "the server counts no output tokens")
    wrong, difference = counters["disagreeing_counts"], counters["disagreeing_tokens"]
    counted = counters["input_tokens"] + counters["output_tokens"]
    factor = (counted + difference) / max(counted, 1)
    return Check(
        COUNTS_DISAGREE,
        wrong <= MAX_DISAGREEING * ok,
        f"prompt and completion tokens are not the total in {percent(wrong / ok, 1)} of answers "
        f"({plural(difference, 'token')}, a factor of {factor:.2f})",
        f"at most {percent(MAX_DISAGREEING)}",
        "token counts and throughput may be wrong by this factor: see what the server counts",
    )


def _events(run: RunData) -> Check:
    """Whether events with tokens are no more than the tokens."""
    counters = run.snapshot.counters
    tokens, surplus = counters["output_tokens"], counters["surplus_events"]
    if not tokens or counters["event_requests"] == run.snapshot.ok:
        return inapplicable(EVENTS_BEYOND, "nothing but events counts the tokens")
    return Check(
        EVENTS_BEYOND,
        surplus <= MAX_SURPLUS * tokens,
        f"{plural(surplus, 'event')} beyond the counted tokens ({percent(surplus / tokens, 1)} of "
        "them)",
        f"at most {percent(MAX_SURPLUS)}",
        "each event with text bears a token: the count is too low (--tokenizer is not the "
        "server's?), or the server sends text twice; ICL is by event, TPOT by the count",
    )

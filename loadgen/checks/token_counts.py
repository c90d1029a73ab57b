"""Token counts: do the counts of the server agree with each other and with the stream?"""

from loadgen.checks.check import Check, inapplicable
from loadgen.core.reference_parser import UNKNOWN_TEXT
from loadgen.metrics.run_data import RunData
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.util.number_format import percent, plural

COUNTS_DISAGREE = "token counts disagree"
EVENTS_BEYOND = "more events than tokens"
FIRST_EVENT = "tokens of the first event"
ONLY_EVENTS = "nothing but events counts the tokens"
MAX_DISAGREEING = 0.01
# A few events may hold a part of a token, or repeat one.
MAX_SURPLUS = 0.1
MAX_UNKNOWN_SURPLUS = 0.01  # of answers, where text under unknown keys was taken for tokens
MAX_FIRST_EVENT = 0.05


def token_counts(run: RunData) -> list[Check]:
    """Check the token counts of ok requests."""
    return [_totals(run), _events(run), _first_event(run)]


def streamed_tokens(run: RunData) -> int:
    """Return the output tokens of ok requests that were streamed, as far as counts and the sample
    of texts show.
    """
    counters = run.snapshot.counters
    tokens = counters["output_tokens"] - counters["hidden_tokens"]
    sample = Comparison.of(run.snapshot)
    if sample is not None and sample.hides:
        tokens = round(tokens * sample.streamed / sample.counted)
    return tokens


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
    counters, ok = run.snapshot.counters, run.snapshot.ok
    tokens, surplus = counters["output_tokens"], counters["surplus_events"]
    if not tokens or counters["event_requests"] == ok:
        return inapplicable(EVENTS_BEYOND, ONLY_EVENTS)
    keys = [name for name in run.snapshot.unread if name.startswith(UNKNOWN_TEXT)]
    if keys and surplus > MAX_UNKNOWN_SURPLUS * ok:
        return Check(
            EVENTS_BEYOND,
            False,
            f"{plural(surplus, 'event')} beyond the counted tokens, and text under unknown keys "
            f"({', '.join(keys)})",
            f"with unknown keys, at most {percent(MAX_UNKNOWN_SURPLUS)} of the answers",
            "text under a key that loadgen does not know was taken for tokens, which the server "
            "does not count: TTFT, TPOT and E2EL may rest on it; report the key",
        )
    return Check(
        EVENTS_BEYOND,
        surplus <= MAX_SURPLUS * tokens,
        f"{plural(surplus, 'event')} beyond the counted tokens ({percent(surplus / tokens, 1)} of "
        "them)",
        f"at most {percent(MAX_SURPLUS)}",
        "each event with text bears a token: the count is too low (--tokenizer is not the "
        "server's?), or the server sends text twice; ICL is by event, TPOT by the count",
    )


def _first_event(run: RunData) -> Check:
    """Whether TPOT depends little on how many tokens the first event of an answer has."""
    counters, ok = run.snapshot.counters, run.snapshot.ok
    if counters["usage_per_event"] + counters["ids_per_event"] >= ok:
        return inapplicable(FIRST_EVENT, "the server says how many tokens each event has")
    if counters["event_requests"] == ok:
        return inapplicable(FIRST_EVENT, ONLY_EVENTS)
    if not counters["decode_tokens"]:
        return inapplicable(FIRST_EVENT, "no answer came in two events or more")
    # An end token that usage counts has no event.
    further = max(0.0, (streamed_tokens(run) - ok) / counters["token_events"] - 1)
    share = further * run.snapshot.histograms["tpot"].count / counters["decode_tokens"]
    return Check(
        FIRST_EVENT,
        share <= MAX_FIRST_EVENT,
        f"{further + 1:.1f} tokens per event; if the first has as many, TPOT is "
        f"{percent(share, 1)} larger",
        f"at most {percent(MAX_FIRST_EVENT)}",
        "the server sends several tokens in one event, and TPOT takes the first event for one "
        "token: ask for longer answers, or for counts in each event (--continuous-usage)",
    )

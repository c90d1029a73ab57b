"""Token counts: do the counts of the server agree with each other and with the stream?"""

from loadgen.checks.check import Bound, Check, inapplicable
from loadgen.core.reference_parser import UNKNOWN_TEXT
from loadgen.metrics.run_data import RunData
from loadgen.metrics.streamed_tokens import MAX_UNSEEN_SHARE, Comparison
from loadgen.util.number_format import SHARE, four_digits, plural

COUNTS_DISAGREE = "token counts disagree"
EVENTS_BEYOND = "more events than tokens"
NOT_STREAMED = "tokens in no text"
FIRST_EVENT = "tokens of the first event"
ONLY_EVENTS = "nothing but events counts the tokens"
MAX_DISAGREEING = Bound(0.01, SHARE)
# A few events may hold a part of a token, or repeat one.
MAX_SURPLUS = Bound(0.1, SHARE)
# Of answers, where text under unknown keys was taken for tokens.
MAX_UNKNOWN_SURPLUS = Bound(0.01, SHARE, why="with unknown keys")
# Beyond what usage itself calls hidden. Text does not always become the same tokens again.
MAX_NOT_STREAMED = Bound(MAX_UNSEEN_SHARE, SHARE)
MAX_FIRST_EVENT = Bound(0.05, SHARE)


def token_counts(run: RunData) -> list[Check]:
    """Check the token counts of ok requests."""
    return [_totals(run), _events(run), _text(run), _first_event(run)]


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
    about = (
        "of answers, whose prompt and completion tokens are not the total "
        f"({plural(difference, 'token')}, a factor of {four_digits(factor)})"
    )
    advice = "token counts and throughput may be wrong by this factor: see what the server counts"
    return MAX_DISAGREEING.check(COUNTS_DISAGREE, wrong / ok, about, advice)


def _events(run: RunData) -> Check:
    """Whether events with tokens are no more than the tokens."""
    counters, ok = run.snapshot.counters, run.snapshot.ok
    tokens, surplus = counters["output_tokens"], counters["surplus_events"]
    if not tokens or counters["event_requests"] == ok:
        return inapplicable(EVENTS_BEYOND, ONLY_EVENTS)
    keys = [name for name in run.snapshot.unread if name.startswith(UNKNOWN_TEXT)]
    events = plural(surplus, "event")
    if keys and surplus / ok > MAX_UNKNOWN_SURPLUS.allowed:
        about = (
            f"of the answers: {events} beyond the counted tokens, and text under unknown keys "
            f"({', '.join(keys)})"
        )
        advice = (
            "text under a key that loadgen does not know was taken for tokens, which the server "
            "does not count: TTFT, TPOT and E2EL may rest on it; report the key"
        )
        return MAX_UNKNOWN_SURPLUS.check(EVENTS_BEYOND, surplus / ok, about, advice)
    advice = (
        "each event with text bears a token: the count is too low (--tokenizer is not the "
        "server's?), or the server sends text twice; ICL is by event, TPOT by the count"
    )
    about = f"beyond the counted tokens ({events})"
    return MAX_SURPLUS.check(EVENTS_BEYOND, surplus / tokens, about, advice)


def _text(run: RunData) -> Check:
    """Whether the texts of a sample of answers have the tokens that usage counts."""
    counters, sample = run.snapshot.counters, Comparison.of(run.snapshot)
    if not counters["output_tokens"] or counters["event_requests"] == run.snapshot.ok:
        return inapplicable(NOT_STREAMED, ONLY_EVENTS)
    about, share = "of the counted tokens", 0.0
    if sample is not None:
        share = sample.difference / sample.counted if sample.hides else 0.0
        about += (
            f" ({sample.counted:g} an answer, {sample.streamed:g} in its text; medians of "
            f"{plural(sample.answers, 'answer')})"
        )
    elif counters["unseen_tokens"] > MAX_UNSEEN_SHARE * counters["output_tokens"]:
        return inapplicable(NOT_STREAMED, "no text was tokenized")
    advice = (
        "the server counts tokens that it did not send, as reasoning that is hidden, or its count "
        "is wrong: output throughput rests on the count alone"
    )
    return MAX_NOT_STREAMED.check(NOT_STREAMED, share, about, advice)


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
    about = (
        f"added to TPOT, if the first event has {four_digits(further + 1)} tokens as the others do"
    )
    advice = (
        "the server sends several tokens in one event, and TPOT takes the first event for one "
        "token: ask for longer answers, or for counts in each event (--continuous-usage)"
    )
    return MAX_FIRST_EVENT.check(FIRST_EVENT, share, about, advice)

"""Group E: was it the workload we claim?"""

from loadgen.checks.check import Check, inapplicable
from loadgen.data_settings import NO_TOKENIZER
from loadgen.evidence import Evidence
from loadgen.words import percent

LEAST_AS_PLANNED = 0.999
# Engines count an end token that no event shows, one an answer; beyond it a tenth is left for what else is not shown.
MOST_TOKENS_PER_EVENT, LEAST_TOKENS_PER_EVENT = 1.1, 0.9
MOST_REPEATED = 0.01  # what so few requests save cannot move any percentile but the lowest


def workload(evidence: Evidence) -> list[Check]:
    """Check what was asked and answered against what the settings say."""
    return [_input(evidence), _output(evidence), _events(evidence), _repeats(evidence)]


def repeated_prompts(evidence: Evidence) -> int:
    """How many requests asked what an earlier one had asked."""
    return int(max(0, evidence.snapshot.scheduled - evidence.heading.provenance["prompts"]["distinct"]))


def _input(evidence: Evidence) -> Check:
    name, counters = "input as planned", evidence.snapshot.counters
    counted, unplanned = counters["input_counted"], counters["unplanned_requests"]
    if not counted:
        if evidence.settings.tokenizer == NO_TOKENIZER:
            return inapplicable(name, "with --tokenizer none no length is planned")
        return inapplicable(name, "prompts repeat answers" if unplanned else "the server counts no prompt tokens")
    share = counters["input_as_planned"] / counted
    more = counters["unexpected_input_tokens"] / counted
    word = "more" if more >= 0 else "fewer"
    predicted = counters["input_predicted"] == evidence.snapshot.ok
    return Check(
        name,
        share >= LEAST_AS_PLANNED,
        f"{percent(share, 1)} of prompts have the {'predicted' if predicted else 'planned'} length "
        f"({abs(more):.1f} tokens {word} by the server's mean)",
        f"at least {percent(LEAST_AS_PLANNED, 1)}",
        _advice_on_input(evidence, predicted),
        evidence.relied_on,
    )


def _advice_on_input(evidence: Evidence, predicted: bool) -> str:
    known = evidence.heading.provenance["prompts"].get("server_tokens") or {}
    if not predicted:
        return (
            "--tokenizer is not the server's, or its chat template adds tokens: name the folder with the server's own "
            "tokenizer and template, or plan for the difference"
        )
    added = "" if known.get("overhead") is None else f", {known['overhead']} tokens beyond the text's,"
    return (
        f"predicted by {known.get('source') or 'the data set'}{added} and the server counts otherwise: name the folder "
        "with the server's own tokenizer and template"
    )


def _output(evidence: Evidence) -> Check:
    name, snapshot = "output as asked", evidence.snapshot
    counters, ok = snapshot.counters, snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    share = counters["output_as_planned"] / ok
    means = f"{counters['output_tokens'] / ok:.1f} of {counters['planned_output_tokens'] / ok:.1f} tokens on average"
    ends = ", ".join(f"{reason or 'none'} {count}" for reason, count in snapshot.finishes.items())
    longer = counters["output_tokens"] > counters["planned_output_tokens"]
    advice = "add --ignore-eos where every answer is to have its full length"
    return Check(
        name,
        share >= LEAST_AS_PLANNED,
        f"{percent(share, 1)} of answers have the length asked ({means}; finish reasons: {ends})",
        f"at least {percent(LEAST_AS_PLANNED, 1)}",
        "the server does not keep to the length that it is asked for" if longer else advice,
        evidence.relied_on,
    )


def _events(evidence: Evidence) -> Check:
    name, counters, ok = "one token per event", evidence.snapshot.counters, evidence.snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    tokens, events = counters["output_tokens"], counters["token_events"]
    one_each = (tokens - ok) / events <= MOST_TOKENS_PER_EVENT and tokens / events >= LEAST_TOKENS_PER_EVENT
    return Check(
        name,
        one_each,
        f"{tokens / events:.2f} tokens per event",
        f"{LEAST_TOKENS_PER_EVENT} to {MOST_TOKENS_PER_EVENT}, the end tokens apart",
        "gaps between events are not gaps between tokens: compare servers by TPOT, not by ICL",
        evidence.relied_on,
    )


def _repeats(evidence: Evidence) -> Check:
    repeated, scheduled = repeated_prompts(evidence), evidence.snapshot.scheduled
    counters = evidence.snapshot.counters
    cached = counters["cached_tokens"] / counters["input_tokens"] if counters["cached_tokens"] else 0.0
    return Check(
        "prompts distinct",
        repeated <= MOST_REPEATED * scheduled,
        f"{repeated} of {scheduled} requests repeated an earlier prompt"
        + (f" (the server took {percent(cached, 1)} of its input from a cache)" if cached else ""),
        f"at most {percent(MOST_REPEATED)}",
        "a prefix cache makes them cheaper: give more prompts, or ask for fewer requests",
        evidence.relied_on,
    )

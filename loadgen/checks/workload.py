"""Group E: was it the workload we claim?"""

from collections.abc import Iterator

from loadgen.checks import prefix_cache
from loadgen.checks.check import Check, inapplicable
from loadgen.config.data import NO_TOKENIZER
from loadgen.metrics.run_data import Evidence
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.util.number_format import percent
from loadgen.workload.arrivals import is_bounded_by_time

PAST_THE_END = "answers past their end"
LEAST_AS_PLANNED = 0.999
# Engines count an end token that no event shows, one an answer; beyond it a tenth is left for what else is not shown.
MOST_TOKENS_PER_EVENT, LEAST_TOKENS_PER_EVENT = 1.1, 0.9
MOST_BROKEN_OFF = 0.05
MOST_REPEATED = 0.01  # what so few requests save cannot move any percentile but the lowest


def workload(evidence: Evidence) -> list[Check]:
    """Check what was asked and answered against what the settings say."""
    return [_input(evidence), _output(evidence), *_past_the_end(evidence), _events(evidence), _repeats(evidence)]


def repeated_prompts(evidence: Evidence) -> int:
    """How many requests asked what an earlier one had asked."""
    prompts, scheduled = evidence.heading.provenance["prompts"], evidence.snapshot.scheduled
    if not prompts.get("further"):
        return int(max(0, scheduled - prompts["distinct"]))
    # Of the prompts that were made while it ran, each request has told.
    first = max(0, min(scheduled, prompts["requests"]) - prompts["distinct"])
    return int(first + evidence.snapshot.counters["repeated_prompts"])


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
    added = "" if known.get("overhead") is None else f"; {known['overhead']} tokens beyond the text's"
    return (
        f"the server's count differs from the prediction ({known.get('source') or 'the data set'}{added}): name the "
        "folder with the server's own tokenizer and template"
    )


def _output(evidence: Evidence) -> Check:
    name, snapshot = "output as asked", evidence.snapshot
    counters, ok = snapshot.counters, snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    share = counters["output_as_planned"] / ok
    means = f"{counters['output_tokens'] / ok:.1f} of {counters['planned_output_tokens'] / ok:.1f} tokens on average"
    ends = f"finish reasons: {_listed(snapshot.finishes)}"
    if early := snapshot.early_stops:
        ends = f"{sum(early.values())} ended early: {_listed(early)}"
    longer = counters["output_tokens"] > counters["planned_output_tokens"]
    advice = "add --ignore-eos where every answer is to have its full length"
    if evidence.settings.ignore_eos:
        advice = "the server ended answers although it was asked to ignore their end: see what stopped them"
    return Check(
        name,
        share >= LEAST_AS_PLANNED,
        f"{percent(share, 1)} of answers have the length asked ({means}; {ends})",
        f"at least {percent(LEAST_AS_PLANNED, 1)}",
        "the server does not keep to the length that it is asked for" if longer else advice,
        evidence.relied_on,
    )


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason or 'none'} {count}" for reason, count in counts.items())


def _past_the_end(evidence: Evidence) -> Iterator[Check]:
    """Whether answers that are to go on past their end do so, which some models' templates turn into errors; nothing
    where they are not to, or none broke off.
    """
    broken, of = evidence.snapshot.counters["broken_off"], evidence.snapshot.failures.of
    if not evidence.settings.ignore_eos or not broken:
        return
    yield Check(
        PAST_THE_END,
        broken <= MOST_BROKEN_OFF * of,
        f"{broken} of {of} answers broke off after their first token, asked to go on past their end (ignore_eos)",
        percent(MOST_BROKEN_OFF),
        "the model may not be able to go on past the end of its answer: give --no-ignore-eos",
        evidence.relied_on,
    )


def _events(evidence: Evidence) -> Check:
    name, counters, ok = "one token per event", evidence.snapshot.counters, evidence.snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    tokens, events = counters["output_tokens"] - counters["hidden_tokens"], counters["token_events"]
    sample = Comparison.of(evidence.snapshot)
    if sample is not None and sample.hides:
        tokens = round(tokens * sample.streamed / sample.counted)
    one_each = (tokens - ok) / events <= MOST_TOKENS_PER_EVENT and tokens / events >= LEAST_TOKENS_PER_EVENT
    return Check(
        name,
        one_each,
        f"{tokens / events:.2f} tokens per event",
        f"{LEAST_TOKENS_PER_EVENT} to {MOST_TOKENS_PER_EVENT}, the end tokens apart",
        "gaps between events are not gaps between tokens: compare no ICL with that of a server that sends each token; "
        "--continuous-usage asks how many tokens an event bears",
        evidence.relied_on,
    )


def _repeats(evidence: Evidence) -> Check:
    repeated, scheduled = repeated_prompts(evidence), evidence.snapshot.scheduled
    counters, before = evidence.snapshot.counters, evidence.heading.provenance["prompts"].get("sent_before", 0)
    cached = counters["cached_tokens"] / counters["input_tokens"] if counters["input_tokens"] else 0.0
    by_time = is_bounded_by_time(evidence.settings)
    distinct = repeated + before <= MOST_REPEATED * scheduled
    earlier = prefix_cache.unexplained(counters, evidence.heading.provenance["prompts"]) if distinct else 0.0
    return Check(
        "prompts distinct",
        distinct and not earlier,
        f"{repeated} of {scheduled} requests repeated an earlier prompt"
        + (f", {before} of the measured prompts had been sent before the clock started" if before else "")
        + (f" (the server took {percent(cached, 1)} of its input from a cache)" if cached else "")
        + (f", {percent(earlier, 1)} of it beyond what shared prefixes explain" if earlier else ""),
        f"at most {percent(MOST_REPEATED)}",
        prefix_cache.ADVICE if earlier else _MORE_WHILE_IT_RUNS if by_time else _MORE if repeated else _OTHER_WARM_UPS,
        evidence.relied_on or by_time,
    )


_CHEAPER = "a prefix cache makes them cheaper:"
_MORE = f"{_CHEAPER} give more prompts, or ask for fewer requests"
_MORE_WHILE_IT_RUNS = (
    f"{_CHEAPER} the data set has no more prompts, or they were not made as fast as they were sent; "
    "give a larger one, or bound the run with --num-prompts"
)
_OTHER_WARM_UPS = f"{_CHEAPER} ask for more requests, or warm up with --warmup-prompt other"

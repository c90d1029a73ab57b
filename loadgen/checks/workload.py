"""Group E: was it the workload we claim?"""

from collections.abc import Iterator

from loadgen.checks import prefix_cache
from loadgen.checks.check import Bound, Check, inapplicable
from loadgen.checks.token_counts import streamed_tokens
from loadgen.config.data import BUILT_IN_TOKENIZER, NO_TOKENIZER, TIKTOKEN
from loadgen.config.settings import is_bounded_by_time
from loadgen.config.target import IGNORE_EOS, MAX_COMPLETION_TOKENS
from loadgen.core.finish_reasons import is_cut
from loadgen.metrics.run_data import RunData
from loadgen.util.number_format import SHARE, four_digits, in_percent, plural
from loadgen.workload import endpoints, missed_length
from loadgen.workload.endpoints.generation import CHAT

TOKENS_PER_EVENT = "several tokens per event"
PAST_THE_END = "answers past their end"
PROMPTS_CUT = "prompts cut"
# Another tokenizer may make fewer tokens of a text, but not so few; the server's own makes as many.
MIN_OF_TEXT, MIN_OF_OWN_TEXT = Bound(0.5, SHARE, ">="), Bound(0.9, SHARE, ">=")
MIN_AS_PLANNED = Bound(0.999, SHARE, ">=")
# Engines count an end token that no event shows, one an answer; beyond it a tenth is left for what
# else is not shown.
MAX_TOKENS_PER_EVENT, MIN_TOKENS_PER_EVENT = 1.1, 0.9
MAX_BROKEN_OFF = Bound(0.05, SHARE)
MAX_REPEATED = Bound(
    0.01, SHARE
)  # what so few requests save cannot move any percentile but the lowest


def workload(run: RunData) -> list[Check]:
    """Check what was asked and answered against what the settings say."""
    return [
        _input(run),
        _cut_prompts(run),
        _output(run),
        *_past_the_end(run),
        _events(run),
        _repeats(run),
        *prefix_cache.as_asked(run),
    ]


def repeated_prompts(run: RunData) -> int:
    """How many requests asked what an earlier one had asked."""
    prompts, scheduled = run.header.provenance["prompts"], run.snapshot.scheduled
    if not prompts.get("further"):
        return int(max(0, scheduled - prompts["distinct"]))
    # Of the prompts that were made while it ran, each request says it.
    first = max(0, min(scheduled, prompts["requests"]) - prompts["distinct"])
    return int(first + run.snapshot.counters["repeated_prompts"])


def _input(run: RunData) -> Check:
    name, counters = "input length off", run.snapshot.counters
    counted, unplanned = counters["input_counted"], counters["unplanned_requests"]
    if run.header.provenance["prompts"].get("images"):
        return inapplicable(name, "only the server counts the tokens of images")
    if missed := _missed_length(run):
        advice = f"{missed_length.CAUSE}: {missed_length.REMEDY}"
        limit = f"within {in_percent(missed_length.MAX_MISS)}"
        return Check(name, False, missed, limit, advice, run.relied_on)
    if not counted:
        if run.settings.tokenizer == NO_TOKENIZER:
            return inapplicable(name, "with --tokenizer none no length is planned")
        return inapplicable(
            name, "prompts repeat answers" if unplanned else "the server counts no prompt tokens"
        )
    share = counters["input_as_planned"] / counted
    more = counters["unexpected_input_tokens"] / counted
    word = "more" if more >= 0 else "fewer"
    predicted = counters["input_predicted"] == run.snapshot.ok
    about = (
        f"of prompts have the {'predicted' if predicted else 'planned'} length "
        f"({four_digits(abs(more))} tokens {word} by the server's mean)"
    )
    tokenizer = run.settings.tokenizer or ""
    if tokenizer == BUILT_IN_TOKENIZER or tokenizer.startswith(TIKTOKEN):
        advice = "lengths are approximate: name the model's tokenizer with --tokenizer"
        if tokenizer != BUILT_IN_TOKENIZER:
            advice = "tiktoken does not count what the server adds to a prompt: plan for it"
        return MIN_AS_PLANNED.check(name, share, about, advice, run.settings.strict)
    advice = _advice_on_input(run, predicted)
    return MIN_AS_PLANNED.check(name, share, about, advice, run.relied_on)


def _cut_prompts(run: RunData) -> Check:
    """Whether the server counted as many tokens as the prompts have text."""
    name, counters = PROMPTS_CUT, run.snapshot.counters
    prompts = run.header.provenance["prompts"]
    planned = counters["planned_input_tokens"]
    if not counters["input_counted"] or not planned or prompts.get("images"):
        return inapplicable(name, "the server counts no prompt tokens, or no length is planned")
    counted = counters["input_tokens"] - counters["unplanned_input_tokens"]
    is_own = counters["input_predicted"] == run.snapshot.ok
    least = MIN_OF_OWN_TEXT if is_own else MIN_OF_TEXT
    advice = (
        "the server may have cut the prompts to its context: the load is not what was asked; "
        "raise its maximum length, or name its own tokenizer with --tokenizer"
    )
    about = "of the tokens of the prompts' text, as the server counts them"
    counts = run.settings.tokenizer != BUILT_IN_TOKENIZER or run.settings.strict
    return least.check(name, counted / planned, about, advice, counts)


def _missed_length(run: RunData) -> str:
    """Describe prompts that the rule of another tool has made far from the requested length;
    empty: there are none.
    """
    prompts, ok = run.header.provenance["prompts"], run.snapshot.ok
    if not ok or run.settings.dataset_rule is None or prompts.get("name") != "random":
        return ""
    low, high = (prompts.get("prefix_tokens", 0) + tokens for tokens in prompts["input_tokens"])
    return missed_length.describe_miss(
        run.snapshot.counters["planned_input_tokens"] / ok, low, high
    )


def _advice_on_input(run: RunData, predicted: bool) -> str:
    prediction = run.header.provenance["prompts"].get("server_tokens") or {}
    if not predicted:
        return (
            "--tokenizer is not the server's, or its chat template adds tokens: name the folder "
            "with the server's own tokenizer and template, or plan for the difference"
        )
    added = (
        ""
        if prediction.get("overhead") is None
        else f"; {prediction['overhead']} tokens beyond the text's"
    )
    source = prediction.get("source") or "the data set"
    return (
        f"the server's count differs from the prediction ({source}{added}): name the folder with "
        "the server's own tokenizer and template"
    )


def _output(run: RunData) -> Check:
    name, snapshot = "output length off", run.snapshot
    counters, ok = snapshot.counters, snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    if run.settings.no_max_tokens:
        return inapplicable(name, "no length is asked with --no-max-tokens")
    share = counters["output_as_planned"] / ok
    means = (
        f"{four_digits(counters['output_tokens'] / ok)} of "
        f"{four_digits(counters['planned_output_tokens'] / ok)} tokens on average"
    )
    ends = f"finish reasons: {_listed(snapshot.finishes)}"
    if early := snapshot.early_stops:
        ends = f"{sum(early.values())} ended early: {_listed(early)}"
    longer = counters["output_tokens"] > counters["planned_output_tokens"]
    was_cut = bool(early) and all(map(is_cut, early))
    advice = "add --ignore-eos where every answer is to have its full length"
    if IGNORE_EOS in run.settings.omit:
        advice = "answers end where the model ends them: the server refuses ignore_eos"
    elif run.settings.ignore_eos:
        advice = (
            "the server ended answers early although ignore_eos was sent: see the finish reasons"
        )
    if was_cut:
        advice = "the server cut answers at a length of its own"
    if longer:
        advice = "the server does not respect the requested length"
    omits = MAX_COMPLETION_TOKENS in run.settings.omit
    if (was_cut or longer) and not omits and endpoints.find(run.settings) is CHAT:
        advice += f": one that reads max_tokens alone needs --omit {MAX_COMPLETION_TOKENS}"
    about = f"of answers have the requested length ({means}; {ends})"
    return MIN_AS_PLANNED.check(name, share, about, advice, run.relied_on)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason or 'none'} {count}" for reason, count in counts.items())


def _past_the_end(run: RunData) -> Iterator[Check]:
    """Whether answers that are to go on past their end do so, which some models' templates turn
    into errors; nothing where they are not to, or none broke off.
    """
    broken, of = run.snapshot.counters["broken_off"], run.snapshot.failures.of
    if not run.settings.ignore_eos or not broken:
        return
    about = (
        f"of the requests ({broken} of {of}) broke off after their first token, although "
        "ignore_eos was sent"
    )
    advice = "the model may not be able to go on past the end of its answer: give --no-ignore-eos"
    yield MAX_BROKEN_OFF.check(PAST_THE_END, broken / of, about, advice, run.relied_on)


def _events(run: RunData) -> Check:
    name, counters, ok = TOKENS_PER_EVENT, run.snapshot.counters, run.snapshot.ok
    if ok == counters["event_requests"]:
        return inapplicable(name, "the server counts no output tokens")
    tokens = streamed_tokens(run)
    events = counters["token_events"]
    one_each = (
        tokens - ok
    ) / events <= MAX_TOKENS_PER_EVENT and tokens / events >= MIN_TOKENS_PER_EVENT
    return Check(
        name,
        one_each,
        f"{four_digits(tokens / events)} tokens per event",
        f"{MIN_TOKENS_PER_EVENT} to {MAX_TOKENS_PER_EVENT}, the end tokens apart",
        "gaps between events are not gaps between tokens: compare no ICL with that of a server "
        "that sends each token; --continuous-usage requests the number of tokens in each event",
        run.relied_on,
    )


def _repeats(run: RunData) -> Check:
    name, counters, scheduled = "prompts repeated", run.snapshot.counters, run.snapshot.scheduled
    prompts, repeated = run.header.provenance["prompts"], repeated_prompts(run)
    before = prompts.get("sent_before", 0)
    seen = f"{repeated} of {plural(scheduled, 'request')} repeated an earlier prompt"
    if before:
        seen += f", {before} of the measured prompts had been sent before the clock started"
    if counters["input_tokens"] and counters["cached_tokens"]:
        cached = in_percent(counters["cached_tokens"] / counters["input_tokens"])
        seen += f" (the server took {cached} of its input from a cache)"
    by_time = is_bounded_by_time(run.settings)
    counts = run.relied_on or by_time
    share = (repeated + before) / max(1, scheduled)
    earlier = prefix_cache.unexplained(counters, prompts)
    if earlier and share <= MAX_REPEATED.allowed:
        about = f"of the input from a cache beyond what shared prefixes explain; {seen}"
        bound = Bound(prefix_cache.MIN_SHARE, SHARE, "<")
        return bound.check(name, earlier, about, prefix_cache.ADVICE, counts)
    advice = _MORE_WHILE_IT_RUNS if by_time else _MORE if repeated else _OTHER_WARM_UPS
    return MAX_REPEATED.check(name, share, f"of the prompts: {seen}", advice, counts)


_CHEAPER = "a prefix cache makes them cheaper:"
_MORE = f"{_CHEAPER} give more prompts, or ask for fewer requests"
_MORE_WHILE_IT_RUNS = (
    f"{_CHEAPER} the data set has no more prompts, or they were not made as fast as they were "
    "sent; give a larger one, or bound the run with --num-prompts"
)
_OTHER_WARM_UPS = f"{_CHEAPER} ask for more requests, or warm up with --warmup-prompt other"

"""Tokens: what was counted, and by what."""

from typing import Annotated, Any, Literal, Self

from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import TOKENS, Snapshot
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.report.result.fields import about, from_json_values
from loadgen.util.number_format import UNKNOWN

# The sources of output tokens, best first, and the counters of the requests that each counted.
COUNTED_BY = {
    "usage": "usage_requests",
    "token ids": "id_requests",
    "tokenizer": "tokenizer_requests",
    "events": "event_requests",
}
COUNTED_PER_EVENT_BY = {"usage": "usage_per_event", "token ids": "ids_per_event"}
TpotOver = Literal["tokens counted", "tokens counted without hidden ones", "streamed tokens of a sample"]
TOKENS_COUNTED: TpotOver = "tokens counted"
WITHOUT_HIDDEN: TpotOver = "tokens counted without hidden ones"
OVER_SAMPLE: TpotOver = "streamed tokens of a sample"


class Prediction(Struct, frozen=True, kw_only=True):
    """What the server was expected to add to a prompt."""

    overhead: Annotated[int | None, about("Tokens beside the prompt's own; null: unknown, or not the same for all.")]
    source: Annotated[str | None, about("From what that is known; null: it is not.")]
    template_sha256: Annotated[str | None, about("Of the chat template; null: none was used.")]
    unknown: Annotated[str | None, about("Why nothing is known; null: it is.")]


class TextSample(Struct, frozen=True, kw_only=True):
    """Answers whose text was tokenized after the run."""

    answers: Annotated[int, about("How many.")]
    counted: Annotated[float, about("Median of their tokens by usage, without hidden ones.")]
    streamed: Annotated[float, about("Median of the tokens of their text.")]
    difference: Annotated[float, about("Median of what was counted beyond the text.")]


class Tokens(Struct, frozen=True, kw_only=True):
    """What was counted, and by what."""

    planned_input_tokens: Annotated[int, about("Of ok requests, as the data set counts them.")]
    planned_output_tokens: Annotated[int, about("Asked of ok requests.")]
    predicted_server_input_tokens: Annotated[
        int | None,
        about(
            "Prompt tokens of ok requests as the server was expected to count them; null where that was not "
            "known of each."
        ),
    ] = None
    input_predicted: Annotated[
        int,
        about("Ok requests whose prompt tokens, as the server counts them, were predicted."),
    ] = 0
    input_tokens: Annotated[
        int,
        about("Of ok requests, as the server counts them; where it does not, the prediction, else the plan."),
    ]
    output_tokens: Annotated[
        int,
        about("Of ok requests: by usage, else by token ids, else by a tokenizer, else one for each event."),
    ]
    cached_tokens: Annotated[int, about("Prompt tokens that the server took from its cache, of ok requests.")]
    cached_counted: Annotated[int, about("Ok requests for which the server counted them.")]
    stream_ns: Annotated[int, about("First to last token of ok requests, the sum, ns.")]
    decode_ns: Annotated[int, about("The same of those that have a TPOT, ns.")]
    decode_tokens: Annotated[int, about("Their output tokens after those of the first event.")]
    usage_requests: Annotated[int, about("Ok requests whose output tokens come from usage.")]
    id_requests: Annotated[int, about("Ok requests whose output tokens are counted by token ids or logprobs.")]
    tokenizer_requests: Annotated[int, about("Ok requests whose output tokens a tokenizer has counted, after the run.")]
    event_requests: Annotated[int, about("Ok requests whose output tokens are counted events.")]
    usage_per_event: Annotated[int, about("Ok requests whose usage counts the tokens of each event.")]
    ids_per_event: Annotated[int, about("Ok requests in which token ids or logprobs did.")]
    imputed_gaps: Annotated[int, about("Gaps of `itl` that are equal parts of the gap between two events.")]
    token_events: Annotated[int, about("Events with tokens, of ok requests.")]
    token_reads: Annotated[int, about("Reads of the socket that brought any of them.")]
    content_events: Annotated[int, about("Those of them with content.")]
    reasoning_events: Annotated[int, about("Those with reasoning.")]
    other_events: Annotated[int, about("Those with tokens of another kind: tool calls, refusals.")]
    unseen_tokens: Annotated[int, about("Tokens that usage counts beyond the events that were seen.")]
    hidden_tokens: Annotated[
        int,
        about(
            "Those of them that usage calls reasoning, of answers that streamed none: in throughput, and not in TPOT."
        ),
    ] = 0
    surplus_events: Annotated[int, about("Events beyond the tokens that usage counts.")]
    nan_events: Annotated[int, about("Events of ok requests in which a number was NaN or infinite.")] = 0
    lost_token_events: Annotated[int, about("Events with tokens, of requests that were not ok.")]
    input_as_planned: Annotated[
        int,
        about("Ok requests whose prompt tokens the server counted as predicted, else as planned."),
    ]
    input_counted: Annotated[int, about("Ok requests whose prompt tokens were planned, and counted by the server.")]
    unexpected_input_tokens: Annotated[
        int,
        about("What it counted of them beyond prediction or plan; below 0 where it counted fewer."),
    ]
    unplanned_requests: Annotated[
        int,
        about("Ok requests whose length was not planned: they repeated answers, or there was no tokenizer."),
    ]
    unplanned_input_tokens: Annotated[int, about("Their prompt tokens, as the server counts them.")]
    unknown_input: Annotated[int, about("Those of them of which it does not count any.")]
    output_as_planned: Annotated[int, about("Ok requests with exactly the requested number of output tokens.")]
    output_counted_by: Annotated[
        str,
        about(
            "By what output tokens were counted: usage, token ids, tokenizer, events, or several of them; "
            "`n/a`: none were."
        ),
    ]
    itl_counted_by: Annotated[
        str,
        about("By what the tokens of an event were: usage, token ids, or events, each as one."),
    ]
    predicted_from: Annotated[
        Prediction | None,
        about("What that rests on; null where the data set does not say."),
    ] = None
    tpot_over: Annotated[
        TpotOver,
        about(
            "What TPOT is divided by: tokens counted, all or without hidden ones, or, where a sample of texts "
            "shows that more were counted than streamed, the tokens of that sample; TPOT is then of these "
            "answers alone."
        ),
    ] = TOKENS_COUNTED
    text_sample: Annotated[
        TextSample | None,
        about(
            "At most 200 answers whose text was tokenized after the run, as usage counted more tokens than "
            "there were events; null: there was no need, or no tokenizer."
        ),
    ] = None

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Take the counts of a run."""
        snapshot = run.snapshot
        counters = snapshot.counters
        counts: dict[str, Any] = {name: counters[name] for name in TOKENS}
        is_predicted = counters["input_predicted"] == snapshot.ok > 0  # of every request
        if not is_predicted:
            counts["predicted_server_input_tokens"] = None
        prediction = run.header.provenance["prompts"].get("server_tokens")
        sample = Comparison.of(snapshot)
        return cls(
            **counts,
            output_counted_by=_sources(counters, COUNTED_BY) or UNKNOWN,
            itl_counted_by=_sources(counters, COUNTED_PER_EVENT_BY) or "events",
            predicted_from=None if prediction is None else from_json_values(prediction, Prediction),
            tpot_over=_tpot_over(snapshot, sample),
            text_sample=None
            if sample is None
            else TextSample(
                answers=sample.answers,
                counted=sample.counted,
                streamed=sample.streamed,
                difference=sample.difference,
            ),
        )


def _sources(counters: dict[str, int], names: dict[str, str]) -> str:
    """Name the sources whose counters are not 0, best first."""
    return " and ".join(source for source, name in names.items() if counters[name])


def _tpot_over(snapshot: Snapshot, sample: Comparison | None) -> TpotOver:
    if sample is not None and sample.hides:
        return OVER_SAMPLE
    return WITHOUT_HIDDEN if snapshot.counters["hidden_tokens"] else TOKENS_COUNTED

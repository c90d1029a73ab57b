"""Tokens: token counts of a run, and how they were counted."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import TOKENS
from loadgen.metrics.streamed_tokens import Comparison
from loadgen.report.result.fields import from_json_values
from loadgen.util.number_format import UNKNOWN

# The sources of output tokens, best first, and the counters of the requests that each counted.
COUNTED_BY = {
    "usage": "usage_requests",
    "token ids": "id_requests",
    "tokenizer": "tokenizer_requests",
    "events": "event_requests",
}
COUNTED_PER_EVENT_BY = {"usage": "usage_per_event", "token ids": "ids_per_event"}
TpotOver = Literal[
    "tokens counted", "tokens counted without hidden ones", "streamed tokens of a sample"
]
TOKENS_COUNTED: TpotOver = "tokens counted"
WITHOUT_HIDDEN: TpotOver = "tokens counted without hidden ones"
OVER_SAMPLE: TpotOver = "streamed tokens of a sample"


class Prediction(Struct, frozen=True, kw_only=True):
    """What the server was expected to add to a prompt."""

    overhead: Annotated[
        int | None,
        "Tokens in addition to the prompt's own; null: unknown, or not the same for all.",
    ]
    source: Annotated[str | None, "How the overhead is known; null: it is unknown."]
    template_sha256: Annotated[str | None, "SHA-256 of the chat template; null: none was used."]
    unknown: Annotated[str | None, "Why the overhead is unknown; null: it is known."]


class TextSample(Struct, frozen=True, kw_only=True):
    """Answers whose text was tokenized after the run."""

    answers: Annotated[int, "Number of them."]
    counted: Annotated[float, "Median of their tokens by usage, without hidden ones."]
    streamed: Annotated[float, "Median of the tokens of their text."]
    difference: Annotated[float, "Median of the tokens counted in excess of the text."]


class Tokens(Struct, frozen=True, kw_only=True):
    """Token counts, and how they were counted."""

    planned_input_tokens: Annotated[
        int, "Input tokens of ok requests, as the data set counts them."
    ]
    planned_output_tokens: Annotated[int, "Output tokens that ok requests asked for."]
    predicted_server_input_tokens: Annotated[
        int | None,
        "Prompt tokens of ok requests, as the server was expected to count them; null if that is "
        "unknown for some.",
    ] = None
    input_predicted: Annotated[
        int, "Ok requests whose prompt tokens, as the server counts them, were predicted."
    ] = 0
    input_tokens: Annotated[
        int,
        "Input tokens of ok requests, as the server counts them, or else as predicted, or else as "
        "planned.",
    ]
    output_tokens: Annotated[
        int,
        "Output tokens of ok requests: by usage, or else token ids, or else a tokenizer, or else "
        "one per event.",
    ]
    cached_tokens: Annotated[
        int, "Prompt tokens that the server took from its cache, of ok requests."
    ]
    cached_counted: Annotated[int, "Ok requests for which the server reported cached tokens."]
    stream_ns: Annotated[int, "Sum of the times from first to last token of ok requests, ns."]
    decode_ns: Annotated[int, "The same sum over ok requests that have a TPOT, ns."]
    decode_tokens: Annotated[
        int, "Output tokens after the first event, of ok requests that have a TPOT."
    ]
    usage_requests: Annotated[int, "Ok requests whose output tokens come from usage."]
    id_requests: Annotated[
        int, "Ok requests whose output tokens are counted by token ids or logprobs."
    ]
    tokenizer_requests: Annotated[
        int, "Ok requests whose output tokens a tokenizer has counted, after the run."
    ]
    event_requests: Annotated[int, "Ok requests whose output tokens are counted as one per event."]
    usage_per_event: Annotated[int, "Ok requests whose usage counts the tokens of each event."]
    ids_per_event: Annotated[
        int, "Ok requests in which token ids or logprobs count the tokens of each event."
    ]
    imputed_gaps: Annotated[
        int, "Gaps of `itl` that are equal parts of the gap between two events."
    ]
    token_events: Annotated[int, "Events with tokens, of ok requests."]
    token_reads: Annotated[int, "Reads of the socket that contained events with tokens."]
    inexact_events: Annotated[
        int, "Events of ok requests with tokens that may have arrived before their time stamp."
    ] = 0
    user_stamped_events: Annotated[
        int, "Of the events of ok requests with tokens, those without a time stamp of the kernel's."
    ] = 0
    reordered_events: Annotated[
        int,
        "Of these events, those that were readable only after segments had come that the network "
        "had lost or delayed.",
    ] = 0
    late_events: Annotated[
        int,
        "Events that may have arrived before their time stamp and that the client read more than "
        "0.2 ms after it.",
    ] = 0
    unbounded_events: Annotated[
        int,
        "Those of them whose times are those of reading, without a bound: of compressed answers, "
        "or of a records file that does not say how late they were read.",
    ] = 0
    content_events: Annotated[int, "Events with content."]
    reasoning_events: Annotated[int, "Events with reasoning."]
    other_events: Annotated[int, "Events with tokens of another kind: tool calls, refusals."]
    silent_events: Annotated[
        int, "Events without text that token ids or usage prove to bear a token."
    ] = 0
    unseen_tokens: Annotated[int, "Tokens that usage counts in excess of the events received."]
    hidden_tokens: Annotated[
        int,
        "Of the unseen tokens, those that usage calls reasoning, in answers that streamed no "
        "reasoning. They count in throughput and not in TPOT.",
    ] = 0
    surplus_events: Annotated[
        int, "Events in excess of the tokens that usage, or a tokenizer, counts."
    ]
    disagreeing_counts: Annotated[
        int, "Ok requests whose prompt and completion tokens do not add up to their total."
    ] = 0
    disagreeing_tokens: Annotated[int, "How many tokens these are apart."] = 0
    nan_events: Annotated[int, "Events of ok requests in which a number was NaN or infinite."] = 0
    results: Annotated[int, "Embeddings or scores of ok requests; 0 where answers have tokens."] = 0
    lost_token_events: Annotated[int, "Events with tokens, of requests that are not ok."]
    input_as_planned: Annotated[
        int,
        "Ok requests for which the server's prompt tokens equal the prediction, or else the plan.",
    ]
    input_counted: Annotated[
        int, "Ok requests whose prompt tokens were planned, and were counted by the server."
    ]
    unexpected_input_tokens: Annotated[
        int,
        "Prompt tokens that the server counted in excess of prediction or plan; negative if it "
        "counted fewer.",
    ]
    unplanned_requests: Annotated[
        int,
        "Ok requests without a planned length: they repeated answers, or there was no tokenizer.",
    ]
    unplanned_input_tokens: Annotated[
        int, "Prompt tokens of the unplanned requests, as the server counts them."
    ]
    unknown_input: Annotated[
        int, "Unplanned requests for which the server reports no prompt tokens."
    ]
    output_as_planned: Annotated[
        int, "Ok requests with exactly the requested number of output tokens."
    ]
    output_counted_by: Annotated[
        str,
        "How output tokens were counted: usage, token ids, tokenizer, events, or several of them; "
        "`n/a`: none were counted.",
    ]
    itl_counted_by: Annotated[
        str, "By what the tokens of an event were: usage, token ids, or events, each as one."
    ]
    predicted_from: Annotated[
        Prediction | None, "Basis of the prediction; null if the data set does not say."
    ] = None
    tpot_over: Annotated[
        TpotOver,
        "The divisor of TPOT: the tokens counted, all or without hidden ones. If a sample of texts "
        "shows that more tokens were counted than streamed, it is the tokens of that sample; TPOT "
        "then covers only the answers of the sample.",
    ] = TOKENS_COUNTED
    text_sample: Annotated[
        TextSample | None,
        "At most 200 answers whose text was tokenized after the run, because usage counted more "
        "tokens than there were events; null: not needed, or no tokenizer.",
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
        tpot_over = WITHOUT_HIDDEN if counters["hidden_tokens"] else TOKENS_COUNTED
        if sample is not None and sample.hides:
            tpot_over = OVER_SAMPLE
        return cls(
            **counts,
            output_counted_by=_sources(counters, COUNTED_BY) or UNKNOWN,
            itl_counted_by=_sources(counters, COUNTED_PER_EVENT_BY) or "events",
            predicted_from=None if prediction is None else from_json_values(prediction, Prediction),
            tpot_over=tpot_over,
            text_sample=None if sample is None else from_json_values(sample, TextSample),
        )


def _sources(counters: dict[str, int], names: dict[str, str]) -> str:
    return " and ".join(source for source, name in names.items() if counters[name])

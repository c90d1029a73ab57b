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
    """Token counts, and how they were counted; of ok requests, unless another is named."""

    planned_input_tokens: Annotated[int, "Input tokens, as the data set counts them."]
    planned_output_tokens: Annotated[int, "Requested output tokens."]
    predicted_server_input_tokens: Annotated[
        int | None,
        "Prompt tokens that the server was expected to count.",
    ] = None
    input_predicted: Annotated[int, "Requests with such a prediction."] = 0
    input_tokens: Annotated[
        int,
        "Input tokens, as the server counts them, else as predicted, else as planned.",
    ]
    output_tokens: Annotated[
        int,
        "Output tokens: by usage, else token ids, else a tokenizer, else one per event.",
    ]
    cached_tokens: Annotated[int, "Prompt tokens that the server took from its cache."]
    cached_counted: Annotated[int, "Requests for which the server reported cached tokens."]
    stream_ns: Annotated[int, "Sum of the times from first to last token, ns."]
    decode_ns: Annotated[int, "The same sum over requests with a TPOT, ns."]
    decode_tokens: Annotated[int, "Their output tokens after the first event."]
    usage_requests: Annotated[int, "Requests whose output tokens come from usage."]
    id_requests: Annotated[int, "Requests counted by token ids or logprobs."]
    tokenizer_requests: Annotated[int, "Requests counted by a tokenizer, after the run."]
    event_requests: Annotated[int, "Requests counted as one token per event."]
    usage_per_event: Annotated[int, "Requests whose usage counts the tokens of each event."]
    ids_per_event: Annotated[int, "Requests in which token ids or logprobs count them."]
    imputed_gaps: Annotated[int, "Gaps of `itl` that are equal parts of one between two events."]
    token_events: Annotated[int, "Events with tokens."]
    token_reads: Annotated[int, "Reads of the socket with such events."]
    inexact_events: Annotated[int, "Such events that may have arrived before their time stamp."] = 0
    user_stamped_events: Annotated[int, "Such events without a time stamp of the kernel's."] = 0
    reordered_events: Annotated[
        int,
        "Those of them that waited for segments that the network lost or delayed.",
    ] = 0
    late_events: Annotated[
        int,
        "Inexact events that the client read more than 0.2 ms after their stamp.",
    ] = 0
    unbounded_events: Annotated[
        int,
        "Events whose times are those of reading, without a bound: of records that do not say how "
        "late they were read.",
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
        "Those of them that usage calls reasoning, in answers that streamed none. They count "
        "in throughput and not in TPOT.",
    ] = 0
    surplus_events: Annotated[
        int, "Events in excess of the tokens that usage, or a tokenizer, counts."
    ]
    disagreeing_counts: Annotated[
        int, "Requests whose prompt and completion tokens do not add up to their total."
    ] = 0
    disagreeing_tokens: Annotated[int, "How many tokens these are apart."] = 0
    nan_events: Annotated[int, "Events in which a number was NaN or infinite."] = 0
    results: Annotated[int, "Embeddings or scores; 0 where answers have tokens."] = 0
    lost_token_events: Annotated[int, "Events with tokens of requests that are not ok."]
    input_as_planned: Annotated[
        int,
        "Requests whose prompt tokens equal the prediction, else the plan.",
    ]
    input_counted: Annotated[
        int, "Requests whose prompt tokens were planned, and counted by the server."
    ]
    unexpected_input_tokens: Annotated[
        int,
        "Prompt tokens that the server counted beyond prediction or plan.",
    ]
    unplanned_requests: Annotated[
        int,
        "Requests without a planned length: they repeated answers, or there was no tokenizer.",
    ]
    unplanned_input_tokens: Annotated[int, "Their prompt tokens, as the server counts them."]
    unknown_input: Annotated[int, "Those of them for which the server reports none."]
    output_as_planned: Annotated[
        int, "Requests with exactly the requested number of output tokens."
    ]
    output_counted_by: Annotated[
        str,
        "How output tokens were counted: usage, token ids, tokenizer, events, or several of "
        "them; or `n/a`.",
    ]
    itl_counted_by: Annotated[
        str, "How the tokens of an event were: usage, token ids, or events, each as one."
    ]
    predicted_from: Annotated[
        Prediction | None, "Basis of the prediction; null if the data set does not say."
    ] = None
    tpot_over: Annotated[
        TpotOver,
        "The divisor of TPOT. If a sample of texts shows that more tokens were counted than "
        "streamed, TPOT covers only the answers of that sample.",
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
        sources = [source for source, name in COUNTED_BY.items() if counters[name]]
        of_events = [source for source, name in COUNTED_PER_EVENT_BY.items() if counters[name]]
        prediction = run.header.provenance["prompts"].get("server_tokens")
        sample = Comparison.of(snapshot)
        tpot_over = WITHOUT_HIDDEN if counters["hidden_tokens"] else TOKENS_COUNTED
        if sample is not None and sample.hides:
            tpot_over = OVER_SAMPLE
        return cls(
            **counts,
            output_counted_by=" and ".join(sources) or UNKNOWN,
            itl_counted_by=" and ".join(of_events) or "events",
            predicted_from=None if prediction is None else from_json_values(prediction, Prediction),
            tpot_over=tpot_over,
            text_sample=None if sample is None else from_json_values(sample, TextSample),
        )

"""The single numbers of a run, by the names of `vllm bench serve`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from loadgen.config.output import METRICS, NAMING, parse_percentiles
from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.features import probe
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.telemetry import SpecDecode
from loadgen.metrics.throughput import per_second, wall_ns
from loadgen.report.result.latencies import Distributions
from loadgen.report.result.rates import RateChange, SteadyState, rate_changes
from loadgen.report.result.timeline import RequestColumns
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import percentile

# vLLM's latencies -> the distributions with their meaning: from sent, a gap per event, and TPOT as
# if the first event were one token. The one difference: TTFT ends with the first token instead of
# the first chunk.
VLLM_MEANING = {"ttft": "ttft_sent", "tpot": "tpot_n1", "itl": "icl", "e2el": "e2el_sent"}
# SGLang divides the gap before an event of its own API by its tokens
GENERATE_MEANING = VLLM_MEANING | {"itl": "itl"}
# And of those that are there only if they are asked for.
QUEUE_MEANING = {"client_queue_time": "pool_wait", "e2el_including_client_queue": "e2el_due"}
PERCENTILE_KEY = re.compile(
    rf"^(p[0-9.e-]+_(ttft|tpot|itl|e2el)|(mean|median|std|p[0-9.e-]+)_({'|'.join(QUEUE_MEANING)}))_ms$"
)
Rate = float | Literal["inf"]
# What each latency of vLLM's is.
TTFT = "time to the first token, from sent; null: none was measured."
TPOT = "time per output token after the first, as vLLM divides; null: none was measured."
ITL = "gap between events with tokens (loadgen's ICL); null: none was measured."
E2EL = "time to the last token, from sent; null: none was measured."


class RunNumbers(Struct, frozen=True, kw_only=True):
    """The single numbers of a run, by the names of `vllm bench serve`.

    Throughputs are over the time from the first send until the last request has ended; latencies
    are those of ok requests, from sent.
    """

    date: Annotated[str, "Local start time, YYYYmmdd-HHMMSS."]
    endpoint_type: Annotated[str, "The backend, by vLLM's older name of the key."]
    backend: Annotated[
        str,
        "The API that was used, by its name in `--backend`; with SGLang's keys by SGLang's name.",
    ]
    label: Annotated[str | None, "`--label`; null: none was given."]
    model_id: Annotated[str, "The model's name in requests."]
    tokenizer_id: Annotated[str, "`--tokenizer`, else the model's name."]
    num_prompts: Annotated[int, "Number of requests that the run should send."]
    max_model_len: Annotated[
        int | None, "Always null: loadgen leaves no request out. A key of vLLM's client in Rust."
    ] = None
    request_rate: Annotated[Rate, 'Requests per second that were requested; "inf": all at once.']
    burstiness: Annotated[Rate, 'Gamma shape of the gaps: 1 Poisson; "inf": constant.']
    max_concurrency: Annotated[int | None, "Maximum requests in flight; null: no cap."]
    ramp_up_strategy: Annotated[str | UnsetType, "`--ramp-up-strategy`, of a run with a ramp."] = (
        UNSET
    )
    ramp_up_start_rps: Annotated[
        float | UnsetType, "Rate at the start of the ramp, requests/s."
    ] = UNSET
    ramp_up_end_rps: Annotated[float | UnsetType, "Rate at the end of the ramp, requests/s."] = (
        UNSET
    )
    duration: Annotated[
        float,
        "Seconds from the first send until the last request has ended, including a request that "
        "found no server; 0 if nothing was sent.",
    ]
    benchmark_start_time_unix: Annotated[
        float | UnsetType, "The first send, s since 1970; missing where it is unknown."
    ] = UNSET
    benchmark_end_time_unix: Annotated[float | UnsetType, "The same, and `duration` later."] = UNSET
    completed: Annotated[int, "Requests that succeeded."]
    failed: Annotated[int, "Requests that failed; without those that ended as `cancelled`."]
    total_input_tokens: Annotated[
        int | None,
        "Input tokens of ok requests, as the server counts them, or else as planned; null if some "
        "are unknown.",
    ]
    total_output_tokens: Annotated[
        int, "Output tokens of ok requests, counted as `loadgen.tokens.output_counted_by` says."
    ]
    total_input_sequences: Annotated[
        int | None, "Embeddings or scores of ok requests; missing where answers have tokens."
    ] = None
    request_throughput: Annotated[
        float | None, "Ok requests per second of `duration`; null where nothing was sent."
    ]
    input_sequence_throughput: Annotated[
        float | None,
        "Embeddings or scores per second of `duration`; missing where answers have tokens.",
    ] = None
    request_goodput: Annotated[
        float | None,
        "Requests per second that met every --goodput limit from sent; null without --goodput.",
    ]
    input_throughput: Annotated[
        float | None,
        "Input tokens per second of `duration`; null where they are unknown, or nothing was sent.",
    ] = None
    output_throughput: Annotated[
        float | None, "Output tokens per second of `duration`; null where nothing was sent."
    ]
    total_token_throughput: Annotated[
        float | None, "Input and output tokens per second of `duration`; null where either is null."
    ]
    max_output_tokens_per_s: Annotated[
        float | None,
        "Output tokens per second of the peak second, or of a run shorter than a second; null: "
        "answers came in one piece.",
    ]
    max_concurrent_requests: Annotated[int, "Peak number of requests in flight."]
    rtfx: Annotated[float, "Always 0: vLLM's inverse real-time factor of audio."] = 0.0
    rps_change_events: Annotated[
        list[RateChange] | UnsetType, "The whole rates that a ramp reached, in their order."
    ] = UNSET
    mean_ttft_ms: Annotated[float | None, f"Mean, ms: {TTFT}"]
    median_ttft_ms: Annotated[float | None, f"Median, ms: {TTFT}"]
    std_ttft_ms: Annotated[float | None, f"Standard deviation, ms: {TTFT}"]
    mean_tpot_ms: Annotated[float | None, f"Mean, ms: {TPOT}"]
    median_tpot_ms: Annotated[float | None, f"Median, ms: {TPOT}"]
    std_tpot_ms: Annotated[float | None, f"Standard deviation, ms: {TPOT}"]
    mean_itl_ms: Annotated[float | None, f"Mean, ms: {ITL}"]
    median_itl_ms: Annotated[float | None, f"Median, ms: {ITL}"]
    std_itl_ms: Annotated[float | None, f"Standard deviation, ms: {ITL}"]
    mean_e2el_ms: Annotated[float | None, f"Mean, ms: {E2EL}"]
    median_e2el_ms: Annotated[float | None, f"Median, ms: {E2EL}"]
    std_e2el_ms: Annotated[float | None, f"Standard deviation, ms: {E2EL}"]
    steady_state: Annotated[
        SteadyState | None,
        "The part of a closed loop in which nearly all slots were in use; null: no closed loop, "
        "or none.",
    ] = None
    probe_completed: Annotated[
        int | UnsetType, "Probes that succeeded, with --probe-request-rate."
    ] = UNSET
    probe_failed: Annotated[int | UnsetType, "Probes that failed."] = UNSET
    probe_median_e2el_ms: Annotated[
        float | UnsetType | None, "Median E2EL of the probes, from sent, ms; null: none succeeded."
    ] = UNSET
    probe_p99_e2el_ms: Annotated[float | UnsetType | None, "99th percentile of the same, ms."] = (
        UNSET
    )
    probe_max_e2el_ms: Annotated[float | UnsetType | None, "Maximum of the same, ms."] = UNSET
    spec_decode_acceptance_rate: Annotated[
        float | UnsetType | None,
        "Percentage of the drafted tokens that were accepted, by the server's metrics, if it "
        "drafts; null: unknown.",
    ] = UNSET
    spec_decode_acceptance_length: Annotated[
        float | UnsetType | None, "Mean output tokens of a step with a draft; null: unknown."
    ] = UNSET
    spec_decode_num_drafts: Annotated[
        int | UnsetType | None, "Number of drafts; null: unknown."
    ] = UNSET
    spec_decode_draft_tokens: Annotated[
        int | UnsetType | None, "Drafted tokens; null: unknown."
    ] = UNSET
    spec_decode_accepted_tokens: Annotated[
        int | UnsetType | None, "Drafted tokens that were accepted; null: unknown."
    ] = UNSET
    spec_decode_per_position_acceptance_rates: Annotated[
        list[float] | UnsetType,
        "For each position of a draft, the share of the drafts whose token there was accepted.",
    ] = UNSET
    percentiles_ms: dict[str, float | None]
    metadata: dict[str, Any]

    @property
    def generates(self) -> bool:
        """Whether answers have tokens; embeddings and scores have none."""
        return self.total_input_sequences is None

    @property
    def streams(self) -> bool:
        """Whether answers are streams of tokens, which come in one piece otherwise."""
        return self.generates and self.max_output_tokens_per_s is not None

    @classmethod
    def of(cls, run: RunData, latencies: Distributions) -> Self:
        """Compute them.

        Args:
            run: Its data.
            latencies: Its latencies; the percentiles that were asked for are among them.
        """
        settings = run.settings
        snapshot = run.snapshot
        header = run.header
        counters = snapshot.counters
        inputs = None if counters["unknown_input"] else counters["input_tokens"]
        outputs = counters["output_tokens"]
        total = None if inputs is None else inputs + outputs
        results = None if settings.generates else counters["results"]
        good = counters["good_sent"] if run.goodput_metrics else None
        peak = None if settings.disable_stream else throughput.peak_output_rate(snapshot)
        metadata: dict[str, Any] = {}
        for pair in settings.metadata:
            key, _, value = pair.partition("=")
            metadata.setdefault(key.strip(), value.strip())
        return cls(
            date=header.date,
            endpoint_type=settings.backend or "openai",
            backend=(settings.sglang_result or {}).get("backend") or settings.backend or "openai",
            label=settings.label,
            model_id=header.model,
            tokenizer_id=settings.tokenizer or header.model,
            num_prompts=snapshot.scheduled,
            metadata=metadata,
            request_rate="inf" if math.isinf(settings.request_rate) else settings.request_rate,
            burstiness=settings.burstiness if math.isfinite(settings.burstiness) else "inf",
            max_concurrency=settings.max_concurrency,
            duration=wall_ns(snapshot) / NS_PER_S,
            completed=snapshot.ok,
            failed=snapshot.not_ok,
            total_input_tokens=inputs,
            total_output_tokens=outputs,
            total_input_sequences=results,
            input_sequence_throughput=per_second(results, snapshot),
            request_throughput=per_second(snapshot.ok, snapshot),
            request_goodput=per_second(good, snapshot),
            input_throughput=per_second(inputs, snapshot),
            output_throughput=per_second(outputs, snapshot) if settings.generates else None,
            total_token_throughput=per_second(total, snapshot),
            max_output_tokens_per_s=peak,
            max_concurrent_requests=throughput.peak_concurrency(snapshot),
            steady_state=SteadyState.of(run),
            **_of_some_runs(run),
            **_latencies(settings, latencies),
        )

    def to_dict(self, columns: RequestColumns | None = None) -> dict[str, Any]:
        """Convert to the flat keys of `vllm bench serve`, in its order: those that answers of the
        backend have.

        Args:
            columns: What --save-detailed keeps; its keys stand among the others.
        """
        values = msgspec.to_builtins(self)
        percentiles, metadata = values.pop("percentiles_ms"), values.pop("metadata")
        kept = {} if columns is None else msgspec.to_builtins(columns)
        latencies = list[str]()
        for metric in METRICS if self.generates else ("e2el",):
            latencies += (f"{statistic}_{metric}_ms" for statistic in STATISTICS)
            latencies += (key for key in percentiles if key.endswith(f"_{metric}_ms"))
        scalars = (name for name in SCALARS if name not in AFTER_COLUMNS)
        order = (*NAMING, *metadata, *scalars, *kept, *AFTER_COLUMNS, *latencies, *percentiles)
        values = metadata | values | kept | percentiles
        absent = SEQUENCE_KEYS if self.generates else TOKEN_KEYS
        return {
            name: values[name]
            for name in (*order, *probe.ROWS, *SPEC_DECODE, "steady_state")
            if name in values and name not in absent
        }

    @classmethod
    def from_dict(cls, flat: Mapping[str, Any]) -> Self:
        """Read the flat keys; those that are unknown are of --metadata.

        Raises:
            ValueError: A key is missing, or has a value of another type.
        """
        percentiles = {key: value for key, value in flat.items() if PERCENTILE_KEY.match(key)}
        fields = {name: flat[name] for name in cls.__struct_fields__ if name in flat}
        metadata = {key: flat[key] for key in flat if key not in {*fields, *percentiles, "loadgen"}}
        if "total_input_sequences" in flat:
            fields = TOKEN_KEYS | fields
        try:
            return msgspec.convert(
                fields | {"percentiles_ms": percentiles, "metadata": metadata}, cls
            )
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


def _of_some_runs(run: RunData) -> dict[str, Any]:
    """Compute what only some runs have: times since 1970, a ramp, probes, speculative decoding."""
    settings, snapshot = run.settings, run.snapshot
    fields = dict[str, Any]()
    sent = snapshot.sent[snapshot.sent >= 0]
    clocks = [worker.start_unix_ns for worker in run.trailer.workers if worker.start_unix_ns]
    if clocks and len(sent):
        start_s = (clocks[0] + int(sent.min())) / NS_PER_S
        end_s = start_s + wall_ns(snapshot) / NS_PER_S
        fields |= {"benchmark_start_time_unix": start_s, "benchmark_end_time_unix": end_s}
    if settings.ramp_up_strategy is not None:
        fields |= {name: getattr(settings, name) for name in RAMP}
        fields["rps_change_events"] = rate_changes(run)
    fields |= probe.numbers(run)
    if (decode := SpecDecode.of(run.telemetry)) is not None:
        rate = None if decode.rate is None else decode.rate * 100
        drafts = (decode.drafts, decode.drafted, decode.accepted)
        counts = (None if count is None else round(count) for count in drafts)
        values = (rate, decode.length, *counts, list(decode.per_position))
        fields |= zip(SPEC_DECODE, values, strict=True)
    return fields


def meaning(settings: RunSettings) -> dict[str, str]:
    """Return the distribution that each of vLLM's four latencies is of."""
    return GENERATE_MEANING if settings.backend == "sglang-native" else VLLM_MEANING


def _latencies(settings: RunSettings, latencies: Distributions) -> dict[str, Any]:
    """Look up the statistics of vLLM's latencies, by the names of the fields of RunNumbers.

    Its client in Rust always has p90 of the four.
    """
    fields: dict[str, Any] = {}
    percentiles_ms: dict[str, float | None] = {}
    requested = [percentile(p) for p in parse_percentiles(settings.metric_percentiles)]
    for metric, name in meaning(settings).items():
        latency = latencies.named(name)
        fields |= {f"{title}_{metric}_ms": latency[of] for title, of in STATISTICS.items()}
        if settings.generates or metric == "e2el":
            percentiles_ms |= {f"{p}_{metric}_ms": latency[p] for p in (*requested, "p90")}
    selected = (
        settings.percentile_metrics.split(",") if settings.max_concurrency is not None else []
    )
    is_known = not is_closed_loop(settings)  # there a request is due only when a slot is free
    for metric, name in QUEUE_MEANING.items():
        if metric not in selected:
            continue
        latency = latencies.named(name)
        names = STATISTICS | dict(zip(requested, requested, strict=True))
        percentiles_ms |= {
            f"{title}_{metric}_ms": latency[of] if is_known else None for title, of in names.items()
        }
    return fields | {"percentiles_ms": percentiles_ms}


RAMP = tuple(name for name in RunNumbers.__struct_fields__ if name.startswith("ramp_up_"))
SPEC_DECODE = tuple(
    name for name in RunNumbers.__struct_fields__ if name.startswith("spec_decode_")
)
STATISTICS = {"mean": "mean", "median": "p50", "std": "std"}  # vLLM's names -> ours
# Keys of streams of tokens alone, with their values where there are no tokens; and keys of
# embeddings and scores alone.
TOKEN_KEYS: dict[str, Any] = {
    "total_output_tokens": 0,
    "output_throughput": None,
    "max_output_tokens_per_s": 0.0,
    **{
        f"{statistic}_{metric}_ms": None
        for metric, statistic in product(METRICS, STATISTICS)
        if metric != "e2el"
    },
}
SEQUENCE_KEYS = ("total_input_sequences", "input_sequence_throughput")
AFTER_COLUMNS = ("max_output_tokens_per_s", "max_concurrent_requests", "rtfx", "rps_change_events")
SCALARS = RunNumbers.__struct_fields__[: RunNumbers.__struct_fields__.index("mean_ttft_ms")]

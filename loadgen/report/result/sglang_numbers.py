"""The numbers that SGLang's `bench_serving` keeps of a run, besides those that `vllm bench
serve` names alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from loadgen.config import slo
from loadgen.config.output import SGLANG_PERCENTILES
from loadgen.metrics.run_data import RunData
from loadgen.metrics.throughput import per_second
from loadgen.report.result.latencies import Distribution
from loadgen.report.result.numbers import RunNumbers
from loadgen.util.number_format import to_ms

LATENCIES = ("e2e_latency", "ttft", "tpot", "itl")
PERCENTILES = tuple(f"p{percentile:g}" for percentile in SGLANG_PERCENTILES)
STATISTICS = ("mean", "median", "std", *PERCENTILES)
# The keys of its result, in its order.
KEYS = (
    *["tag", "backend", "dataset_name", "request_rate", "max_concurrency", "sharegpt_output_len"],
    *["random_input_len", "random_output_len", "random_range_ratio", "server_info", "duration"],
    *["completed", "total_input_tokens", "total_input_text_tokens", "total_input_vision_tokens"],
    *["total_output_tokens", "total_output_tokens_retokenized", "request_throughput"],
    *["input_throughput", "output_throughput", "total_throughput"],
    *(f"{statistic}_{latency}_ms" for latency, statistic in product(LATENCIES, STATISTICS)),
    *["concurrency", "accept_length", "max_output_tokens_per_s", "max_concurrent_requests"],
    *["goodput_slos_ms", "slo_attainment", "slo_attainment_by_metric"],
)
GOODPUT = {"ttft": "ttft_sent", "tpot": "tpot_n1", "e2el": "e2el_sent"}


class SglangNumbers(Struct, frozen=True, kw_only=True):
    """What `--sglang-result` adds: the keys of SGLang's `bench_serving` that `vllm bench serve`
    does not have.
    """

    tag: Annotated[str | None, "`--tag`; null: none was given."]
    dataset_name: Annotated[str | None, "The data set, by SGLang's name."]
    sharegpt_output_len: Annotated[int | None, "`--sharegpt-output-len`; null: none was given."]
    random_input_len: Annotated[int | str | None, "`--random-input-len`."]
    random_output_len: Annotated[int | str | None, "`--random-output-len`."]
    random_range_ratio: Annotated[float | str | None, "`--random-range-ratio`, as SGLang means it."]
    server_info: Annotated[None, "Always null: loadgen does not ask for `/server_info`."] = None
    total_input_text_tokens: Annotated[int | None, "As `total_input_tokens`."]
    total_input_vision_tokens: Annotated[
        int, "Always 0: only the server knows the tokens of images."
    ] = 0
    total_output_tokens_retokenized: Annotated[
        None, "Always null: loadgen tokenizes no answer."
    ] = None
    total_throughput: Annotated[float | None, "As `total_token_throughput`."]
    mean_e2e_latency_ms: Annotated[float | None, "As `mean_e2el_ms`."]
    median_e2e_latency_ms: Annotated[float | None, "As `median_e2el_ms`."]
    std_e2e_latency_ms: Annotated[float | None, "As `std_e2el_ms`."]
    p90_e2e_latency_ms: Annotated[float | None, "As `p90_e2el_ms`."]
    p95_e2e_latency_ms: Annotated[float | None, "As `p95_e2el_ms`."]
    p99_e2e_latency_ms: Annotated[float | None, "As `p99_e2el_ms`."]
    concurrency: Annotated[
        float | None, "Mean number of ok requests in flight: the sum of their E2EL over `duration`."
    ]
    accept_length: Annotated[
        float | None,
        "Mean output tokens of a step with a draft, by the server's metrics; null: unknown.",
    ] = None
    goodput_slos_ms: Annotated[dict[str, float] | UnsetType, "The limits of `--goodput`, ms."] = (
        UNSET
    )
    slo_attainment: Annotated[
        float | UnsetType | None, "Share of the requests that met every limit of `--goodput`."
    ] = UNSET
    slo_attainment_by_metric: Annotated[
        dict[str, float | None] | UnsetType,
        "Share of the requests that met each limit of `--goodput`.",
    ] = UNSET

    @classmethod
    def of(cls, run: RunData, numbers: RunNumbers, e2el: Distribution) -> Self | None:
        """Compute them; None if the settings do not ask for SGLang's result.

        Args:
            run: The data of the run.
            numbers: Those that `vllm bench serve` has, too.
            e2el: Its end-to-end latency, from sent.
        """
        arguments = run.settings.sglang_result
        if arguments is None:
            return None
        given: dict[str, Any] = {name: arguments.get(name) for name in cls.__struct_fields__[:6]}
        of_e2el: dict[str, Any] = {f"{p}_e2e_latency_ms": e2el[p] for p in PERCENTILES}
        snapshot, length = run.snapshot, numbers.spec_decode_acceptance_length
        return cls(
            **given,
            total_input_text_tokens=numbers.total_input_tokens,
            total_throughput=numbers.total_token_throughput,
            mean_e2e_latency_ms=e2el.mean_ms,
            median_e2e_latency_ms=e2el.p50_ms,
            std_e2e_latency_ms=e2el.std_ms,
            **of_e2el,
            accept_length=None if length is UNSET else length,
            concurrency=per_second(snapshot.histograms["e2el_sent"].total / 1e9, snapshot),
            **_attainment(run),
        )

    def to_dict(self, flat: Mapping[str, Any]) -> dict[str, Any]:
        """Convert to SGLang's keys, in its order, followed by the others of a result.

        Args:
            flat: The keys of `vllm bench serve`.
        """
        values = {**flat, **msgspec.to_builtins(self)}
        return {name: values[name] for name in KEYS if name in values} | dict(flat)


def _attainment(run: RunData) -> dict[str, Any]:
    """Compute the shares of the requests that met the limits of --goodput; an answer of one
    token has a TPOT of 0.
    """
    limits = slo.parse_goodput(run.settings.goodput)
    snapshot = run.snapshot
    if not limits:
        return {}
    by_metric = {}
    for metric, limit_ns in limits.items():
        histogram = snapshot.histograms[GOODPUT[metric]]
        met = histogram.count_at_or_below(limit_ns)
        met += snapshot.ok - histogram.count if metric == "tpot" else 0
        by_metric[metric] = _share(met, snapshot.scheduled)
    return {
        "goodput_slos_ms": {metric: to_ms(limit) for metric, limit in limits.items()},
        "slo_attainment": _share(snapshot.counters["good_sent"], snapshot.scheduled),
        "slo_attainment_by_metric": by_metric,
    }


def _share(count: int, total: int) -> float | None:
    return count / total if total else None

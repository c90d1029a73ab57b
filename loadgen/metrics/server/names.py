"""Names of server metrics: how engines spell the quantities that loadgen reads, as data.

A server is known by the names that it uses, not by who started it: most servers that are measured
were started by somebody else. So this table is the core's, and needs no engine. Of each quantity
the first name that a server has is taken. Read in the sources of vLLM 0.32 (`vllm:`, older
spellings after it; loadgen's simulator uses them too), SGLang (`sglang:`), TensorRT-LLM (`trtllm_`,
and the iteration statistics that its /metrics gives as JSON), llama.cpp (`llamacpp:`) and MindIE,
which uses no prefix.
"""

from collections.abc import Iterable
from itertools import chain

# Levels, as they are at a moment; of the series of one name (an engine rank each) they are summed.
SUMMED = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "trtllm_num_requests_running",
        "numActiveRequests",
        "llamacpp:requests_processing",
        "num_requests_running",
    ),
    "waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "trtllm_num_requests_waiting",
        "numQueuedRequests",
        "llamacpp:requests_deferred",
        "num_requests_waiting",
    ),
}
# Shares from 0 to 1, and one length; of several series the highest: the rank that is full is the
# one that preempts.
HIGHEST = {
    "kv_usage": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "trtllm_kv_cache_utilization",
        "kvCacheStats.usedNumBlocks / maxNumBlocks",
        "llamacpp:kv_cache_usage_ratio",
        "npu_cache_usage_perc",
    ),
    # Where there are no counters of it: of the last batch, so that its mean is of scrapes and not
    # of tokens.
    "batch_acceptance": ("sglang:spec_accept_rate",),
    "batch_accept_length": ("sglang:spec_accept_length",),  # tokens, no share
}
# Counts since the server started.
COUNTERS = {
    "requests": (
        "vllm:request_success_total",  # all that ended, the aborted ones included
        "sglang:num_requests_total",
        "trtllm_request_success_total",
        "request_success_total",
    ),
    # Requests that the server gave up; many releases of vLLM leave it at 0 (vllm#31503,
    # vllm#55634).
    "aborted": (
        "vllm:request_success_total{finished_reason=abort}",
        "sglang:num_aborted_requests_total",
    ),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "trtllm_prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
        "prompt_tokens_total",
    ),
    "generation_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "trtllm_generation_tokens_total",
        "llamacpp:tokens_predicted_total",
        "generation_tokens_total",
    ),
    "preemptions": (
        "vllm:num_preemptions_total",
        "sglang:num_retracted_requests_total",
        "num_preemptions_total",
    ),
    # tokens that were looked for in a prefix cache, and those of them that were found
    "prefix_queries": (
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
        "sglang:prompt_tokens_total",
        "trtllm_prompt_tokens_total",
    ),
    "prefix_hits": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
        "trtllm_prompt_cached_tokens_total",
        "llamacpp:prompt_tokens_cached_total",
    ),
    # those that were not, where they are counted instead
    "prefix_misses": ("llamacpp:prompt_tokens_total",),
    "drafts": ("vllm:spec_decode_num_drafts_total", "sglang:spec_verify_calls_total"),
    "drafted_tokens": (
        "vllm:spec_decode_num_draft_tokens_total",
        "trtllm_spec_decode_num_draft_tokens_total",
        "llamacpp:spec_decode_num_draft_tokens_total",
    ),
    "accepted_tokens": (
        "vllm:spec_decode_num_accepted_tokens_total",
        "trtllm_spec_decode_num_accepted_tokens_total",
        "llamacpp:spec_decode_num_accepted_tokens_total",
    ),
}
# Sums of times (seconds) and of tokens, and how many values they have, which make means that are
# exact over a run: of a request in the queue, until its first token, and after it; between two
# tokens; tokens of an engine step. Of SGLang `prefill` is a pass of the model.
SUM, COUNT = "_sum", "_count"
MEANS = {
    "queue": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds"),
    "prefill": (
        "vllm:request_prefill_time_seconds",
        "sglang:per_stage_req_latency_seconds{stage=prefill_forward}",
    ),
    "decode": ("vllm:request_decode_time_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "sglang:inter_token_latency_seconds"),
    "step_tokens": ("vllm:iteration_tokens_total",),
}


def _samples(names: Iterable[str], part: str) -> tuple[str, ...]:
    """Return the names of the sums or of the counts of histograms."""
    parted = (name.partition("{") for name in names)
    return tuple(f"{name}{part}{brace}{label}" for name, brace, label in parted)


COUNTERS |= {
    quantity + part: _samples(names, part)
    for quantity, names in MEANS.items()
    for part in (SUM, COUNT)
}
UNTYPED = frozenset(
    name.partition("{")[0]
    for quantity in MEANS
    for part in (SUM, COUNT)
    for name in COUNTERS[quantity + part]
)
# llama.cpp counts no requests, and calls of its decoder.
COUNTERS["prefill_sum"] += ("llamacpp:prompt_seconds_total",)
COUNTERS["decode_sum"] += ("llamacpp:tokens_predicted_seconds_total",)
COUNTERS["step_tokens_count"] += ("llamacpp:n_decode_total",)
# vLLM sets this level in each step: after the last one it shows what was running then (vllm#22545,
# vllm#29928).
OF_LAST_STEP = "vllm:num_requests_running"
# Accepted tokens by their position in the draft, a label; each position is a counter of its own:
# accepted_at_0, ...
PER_POSITION, ACCEPTED_AT = "vllm:spec_decode_num_accepted_tokens_per_pos_total", "accepted_at_"
# Seconds from a request's arrival to its first token, as the server sees them.
TTFT = (
    "vllm:time_to_first_token_seconds",
    "sglang:time_to_first_token_seconds",
    "trtllm_time_to_first_token_seconds",
    "time_to_first_token_seconds",
)
PLAIN = SUMMED | HIGHEST | COUNTERS
SAMPLES = frozenset(
    [
        *(name.partition("{")[0] for name in chain.from_iterable(PLAIN.values())),
        *(f"{name}_sum" for name in TTFT),
        *(f"{name}_count" for name in TTFT),
        *(f"{name}_bucket" for name in TTFT),
        PER_POSITION,
    ]
)
# Labels of series that repeat what another series of the name counts already, but for these values.
REPEATED = {"tp_rank": "0", "priority": ""}


def together(quantity: str, values: Iterable[float]) -> float:
    """Combine several values of a quantity, of ranks or of servers: the maximum for HIGHEST, else
    the sum.

    Args:
        quantity: A key of PLAIN.
        values: At least one value.
    """
    return float((max if quantity in HIGHEST else sum)(values))

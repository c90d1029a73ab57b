"""Metric names of every engine map to one set; values that are not numbers are left out."""

import math

import orjson
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.metrics.server.parser import Unreadable, cache_block, is_json, is_text, read
from tests.helpers.source import ROOT

DATA = ROOT / "tests" / "data"


def vllm() -> bytes:
    """What vLLM 0.32 told after five requests."""
    line = (DATA / "captures" / "vllm_metrics.jsonl").read_bytes().splitlines()[1]
    return "".join(text for _, text in orjson.loads(line)["reads"][1:]).encode()


def test_vllm():
    reading = read(vllm())
    assert reading.values == {
        "running": 0,
        "waiting": 0,
        "kv_usage": 0,
        "requests": 5,
        "aborted": 0,
        "prompt_tokens": 55,
        "generation_tokens": 253,
        "preemptions": 0,
        "prefix_queries": 55,
        "prefix_hits": 0,
        "queue_sum": 0.00010236000025543035,
        "queue_count": 5,
        "prefill_sum": 0.030527281999866318,
        "prefill_count": 5,
        "decode_sum": 0.529625858999907,
        "decode_count": 5,
        "itl_sum": 0.529625858999907,
        "itl_count": 248,
        "step_tokens_sum": 308,
        "step_tokens_count": 253,
    }
    assert reading.names["generation_tokens"] == "vllm:generation_tokens_total"
    assert reading.names["ttft"] == "vllm:time_to_first_token_seconds"
    assert reading.ttft is not None
    assert (reading.ttft.count, reading.ttft.sum) == (5, 0.056756019592285156)
    assert reading.ttft.interval(50) == (0.005, 0.01)
    assert max(reading.ttft.upto) == math.inf


def test_llamacpp():
    reading = read((DATA / "metrics" / "llamacpp.txt").read_bytes())
    assert reading.values == {
        "running": 0,
        "waiting": 0,
        "prompt_tokens": 38,
        "generation_tokens": 25,
        "prefix_hits": 35,
        "prefix_misses": 38,
        "drafted_tokens": 0,
        "accepted_tokens": 0,
        "prefill_sum": 0.351189,  # it counts no requests
        "decode_sum": 0.517219,
        "step_tokens_count": 25,
    }
    assert reading.ttft is None


def test_series_with_a_label_is_read_without_the_others_of_its_name():
    text = b"""
sglang:per_stage_req_latency_seconds_sum{stage="prefill_forward",tp_rank="0"} 3.5
sglang:per_stage_req_latency_seconds_count{stage="prefill_forward",tp_rank="0"} 2
sglang:per_stage_req_latency_seconds_sum{stage="tokenize",tp_rank="0"} 9
sglang:queue_time_seconds_sum{tp_rank="0"} 0.5
sglang:queue_time_seconds_count{tp_rank="0"} 2
sglang:queue_time_seconds_bucket{tp_rank="0",le="+Inf"} 2
"""
    reading = read(text)
    assert reading.values == {
        "prefill_sum": 3.5,
        "prefill_count": 2,
        "queue_sum": 0.5,
        "queue_count": 2,
    }
    stage = "sglang:per_stage_req_latency_seconds_sum{stage=prefill_forward}"
    assert reading.names["prefill_sum"] == stage


def test_sglang_where_ranks_and_priorities_repeat_what_another_series_counts():
    text = b"""
sglang:num_running_reqs{model_name="m",tp_rank="0",priority=""} 3.0
sglang:num_running_reqs{model_name="m",tp_rank="0",priority="1"} 2.0
sglang:num_running_reqs{model_name="m",tp_rank="1",priority=""} 3.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 4.0
sglang:token_usage{tp_rank="0"} 0.25
sglang:cached_tokens_total{cache_source="device"} 70.0
sglang:cached_tokens_total{cache_source="host"} 5.0
sglang:prompt_tokens_total 100.0
sglang:generation_tokens_total 9.0
sglang:num_retracted_requests_total 1.0
sglang:num_requests_total 2.0
sglang:spec_accept_rate 0.6
sglang:spec_accept_length 2.8
sglang:spec_verify_calls_total{model_name="m"} 5.0
sglang:fwd_occupancy NaN
"""
    assert read(text).values == {
        "running": 3,
        "waiting": 4,
        "kv_usage": 0.25,
        "batch_acceptance": 0.6,
        "batch_accept_length": 2.8,
        "drafts": 5,
        "requests": 2,
        "prompt_tokens": 100,
        "generation_tokens": 9,
        "preemptions": 1,
        "prefix_queries": 100,
        "prefix_hits": 75,
    }


def test_accepted_tokens_of_vllm_are_counted_at_each_position_over_its_ranks():
    text = b"""
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 20.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 12.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 8.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="m",position="0"} 7.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="10"} 4.0
vllm:spec_decode_num_accepted_tokens_per_pos_created{engine="0",model_name="m",position="0"} 1.7e+09
"""
    reading = read(text)
    assert reading.values == {
        "drafts": 20,
        "drafted_tokens": 20,
        "accepted_tokens": 12,
        "accepted_at_0": 15,
        "accepted_at_10": 4,
    }
    assert reading.names["accepted_at_10"] == "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def test_tensorrt_llm_as_prometheus_text():
    text = b"""
trtllm_num_requests_running{engine_type="trtllm"} 2.0
trtllm_num_requests_waiting{engine_type="trtllm"} 1.0
trtllm_kv_cache_utilization 0.5
trtllm_prompt_tokens_total 10.0
trtllm_prompt_cached_tokens_total 4.0
trtllm_spec_decode_num_draft_tokens_total 8.0
trtllm_spec_decode_num_accepted_tokens_total 6.0
trtllm_request_success_total{finished_reason="length"} 3.0
trtllm_time_to_first_token_seconds_sum 0.5
trtllm_time_to_first_token_seconds_count 3.0
"""
    reading = read(text)
    assert reading.values["running"] == 2
    assert reading.values["prefix_hits"] == 4
    assert reading.values["drafted_tokens"] == 8
    assert reading.ttft is not None
    assert reading.ttft.mean == 0.5 / 3


def test_tensorrt_llm_as_json_of_iterations_of_which_the_last_counts():
    def iteration(active, used):
        return {
            "iter": 1,
            "numActiveRequests": active,
            "numQueuedRequests": 5,
            "kvCacheStats": {"usedNumBlocks": used, "maxNumBlocks": 8},
        }

    body = orjson.dumps([iteration(1, 1), iteration(3, 2)])
    assert is_json(body)
    assert read(body).values == {"running": 3, "waiting": 5, "kv_usage": 0.25}
    assert read(b"[]").values == {}, "no iteration since somebody asked before"


def test_mindie_whose_names_have_no_prefix():
    text = b"""
# TYPE num_requests_running gauge
num_requests_running{model_name="m"} 7
num_requests_waiting{model_name="m"} 0
npu_cache_usage_perc{model_name="m"} 0.5
request_success_total{model_name="m"} 11
num_preemptions_total{model_name="m"} 2
generation_tokens_total{model_name="m"} 99
time_to_first_token_seconds_count{model_name="m"} 0
time_to_first_token_seconds_sum{model_name="m"} 0
"""
    reading = read(text)
    assert reading.values["running"] == 7
    assert reading.values["kv_usage"] == 0.5
    assert reading.values["requests"] == 11
    assert reading.ttft is not None
    assert reading.ttft.mean is None


def test_levels_of_several_ranks_are_summed_and_of_shares_the_highest_is_taken():
    text = b"""
vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:gpu_cache_usage_perc{engine="0"} 0.2
vllm:gpu_cache_usage_perc{engine="1"} 0.9
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0"} 1
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 2
vllm:time_to_first_token_seconds_bucket{engine="1",le="1.0"} 3
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 3
vllm:time_to_first_token_seconds_count{engine="0"} 2
vllm:time_to_first_token_seconds_count{engine="1"} 3
vllm:time_to_first_token_seconds_sum{engine="0"} 2.5
vllm:time_to_first_token_seconds_sum{engine="1"} 1.5
"""
    reading = read(text)
    assert reading.values == {"running": 7, "kv_usage": 0.9}
    assert reading.names["kv_usage"] == "vllm:gpu_cache_usage_perc"
    assert reading.ttft is not None
    assert (reading.ttft.count, reading.ttft.sum, reading.ttft.upto) == (
        5,
        4.0,
        {1.0: 4, math.inf: 5},
    )


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_non_finite_values_are_left_out(value):
    text = f"""
vllm:num_requests_running {value}
vllm:generation_tokens_total {value}
vllm:num_requests_waiting 1
vllm:time_to_first_token_seconds_sum {value}
vllm:time_to_first_token_seconds_count 1
"""
    reading = read(text.encode())
    assert reading.values == {"waiting": 1}
    assert reading.ttft is None


def test_unknown_metrics_are_skipped_even_if_malformed():
    assert read(b"up 1\nother{label=never ended 2\nvllm:num_requests_running 5\n").values == {
        "running": 5
    }
    assert read(
        b"vllm:num_requests_running_by_reason{ 2\nvllm:num_requests_running 5\n"
    ).values == {"running": 5}
    assert read(b"up 1\n").values == {}


@pytest.mark.parametrize(
    "body",
    [
        b"vllm:num_requests_running",
        b"vllm:num_requests_running many",
        b'vllm:num_requests_running{engine="0 5',
        b"vllm:num_requests_running\xff 5",
        b'vllm:time_to_first_token_seconds_bucket{le="soon"} 5',
        b"vllm:time_to_first_token_seconds_bucket 5",
        b'[{"id": 1}]',
        b"[1]",
        b"[",
    ],
)
def test_unreadable_body_raises_unreadable(body):
    with pytest.raises(Unreadable):
        read(body)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b"# TYPE up gauge\nup 1\n", True),
        (b"# TYPE up gauge\n", False),
        (b"", False),
        (b"<!DOCTYPE html><html><body>metrics</body></html>", False),
        (b"<html>\n", False),
        (b'{"error": "not found"}', False),
        (b"[]", False),
        (b"OK", False),
        (b"\x00\xff", False),
    ],
)
def test_prometheus_text_is_told_from_everything_else(body, wanted):
    assert is_text(body) is wanted
    assert is_text(vllm())


# -- the formats of Prometheus


@pytest.mark.parametrize(
    "line",
    [
        "vllm:num_requests_running 5",
        "vllm:num_requests_running{} 5.0 1700000000123",
        '\tvllm:num_requests_running\t{ engine = "0" , }\t5',
        r'vllm:num_requests_running{model="a \\ \" } \n, b"} 5e0',
        "vllm:num_requests_running +5.",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blanks_labels_and_timestamps_change_no_value(line: str, end: str) -> None:
    text = end.join(["# HELP vllm:num_requests_running Text, \\\\ and \\n.", "", line, "# any", ""])
    assert read(text.encode()).values == {"running": 5}


def test_a_counter_keeps_the_name_that_the_server_gives_it() -> None:
    text = (
        b"# TYPE vllm:generation_tokens counter\nvllm:generation_tokens "
        b"3\nvllm:prompt_tokens_total 4\n"
    )
    assert read(text).values == {"prompt_tokens": 4}


def test_openmetrics_is_read_by_its_own_rules() -> None:
    text = b"""\
# TYPE vllm:generation_tokens counter
# HELP vllm:generation_tokens Tokens.
vllm:generation_tokens_total 253.0 1700000000.5 # {trace_id="a b"} 1.0 1700000000.5
# TYPE other info
other_info{a="b"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
# UNIT vllm:time_to_first_token_seconds seconds
vllm:time_to_first_token_seconds_bucket{le="0.5"} 3 # {trace_id="c"} 0.25
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 5
vllm:time_to_first_token_seconds_count 5
vllm:time_to_first_token_seconds_sum 2.5
vllm:time_to_first_token_seconds_created 1700000000.5
# EOF
"""
    reading = read(text, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert reading.values == {"generation_tokens": 253}
    assert reading.ttft is not None
    assert (reading.ttft.count, reading.ttft.sum, reading.ttft.upto) == (
        5,
        2.5,
        {0.5: 3, math.inf: 5},
    )
    assert is_text(text, CONTENT_TYPE_LATEST)


class Families:
    """A collector of the families of a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def collect(self):
        return text_string_to_metric_families(self.text)


def test_a_server_says_the_same_in_both_formats() -> None:
    registry = CollectorRegistry()
    registry.register(Families(vllm().decode()))
    # The package replaces colons in samples.
    text = generate_latest(registry).replace(b"\nvllm_", b"\nvllm:")
    assert read(text, CONTENT_TYPE_LATEST) == read(vllm())


@pytest.mark.parametrize(
    "text",
    [
        "vllm:num_requests_running 5\n",
        "vllm:num_requests_running  5\n# EOF\n",
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 5 # {} 1\n# EOF\n",
        "# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total -1\n# EOF\n",
    ],
    ids=["cut off", "two blanks", "exemplar of a gauge", "negative counter"],
)
def test_openmetrics_that_breaks_its_rules_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text.encode(), CONTENT_TYPE_LATEST)
    assert not is_text(text.encode(), CONTENT_TYPE_LATEST)


def test_long_malformed_lines_are_unreadable() -> None:
    for rest in (
        " " + "1" * 200_000 + "x",
        '{a="' + "\\" * 200_001,
        "{" + 'a="b",' * 50_000 + "} x",
        " " * 200_000,
    ):
        with pytest.raises(Unreadable):
            read(f"vllm:num_requests_running{rest}\n".encode())


# -- the unit of a prefix cache


@pytest.mark.parametrize(
    ("metrics", "tokens"),
    [
        (b'vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0"} 1.0\n', 32),
        (b'vllm:cache_config_info{engine="0",num_gpu_blocks="661",block_size="16"} 1.0\n', 16),
        (
            b"# TYPE x "
            b'gauge\nsglang:cache_config_info{model_name="m",num_pages="9",page_size="1"} 1.0\n',
            1,
        ),
        (b'trtllm_kv_cache_tokens_per_block{model_name="m"} 64.0\n', 64),
        (b"llamacpp:prompt_tokens_total 5\n", 1),
    ],
)
def test_block_size_is_read(metrics: bytes, tokens: int) -> None:
    block = cache_block(metrics)
    assert block is not None
    assert block.tokens == tokens


@pytest.mark.parametrize(
    "metrics",
    [b"", b"vllm:num_requests_running 1\n", b'vllm:cache_config_info{block_size="0"} 1\n'],
)
def test_metrics_without_a_block_size_say_nothing(metrics: bytes) -> None:
    assert cache_block(metrics) is None

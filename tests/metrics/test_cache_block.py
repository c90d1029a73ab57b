"""The block size of a prefix cache, as engines spell it."""

import pytest

from loadgen.metrics.server.cache_block import read


@pytest.mark.parametrize(
    ("metrics", "tokens"),
    [
        (b'vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0"} 1.0\n', 32),
        (b'vllm:cache_config_info{engine="0",num_gpu_blocks="661",block_size="16"} 1.0\n', 16),
        (b'# TYPE x gauge\nsglang:cache_config_info{model_name="m",num_pages="9",page_size="1"} 1.0\n', 1),
        (b'trtllm_kv_cache_tokens_per_block{model_name="m"} 64.0\n', 64),
        (b"llamacpp:prompt_tokens_total 5\n", 1),
    ],
)
def test_the_size_is_read(metrics: bytes, tokens: int) -> None:
    found = read(metrics)
    assert found is not None
    assert found.tokens == tokens


@pytest.mark.parametrize(
    "metrics", [b"", b"vllm:num_requests_running 1\n", b'vllm:cache_config_info{block_size="0"} 1\n']
)
def test_metrics_without_it_say_nothing(metrics: bytes) -> None:
    assert read(metrics) is None

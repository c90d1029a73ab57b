"""The block size of a server's prefix cache, as its metrics spell it."""

import re

from loadgen.workload.prefix_cache.cache_block import CacheBlock

OF_VLLM = "vllm:cache_config_info"
# A label or value of a metric, as in vLLM 0.32, SGLang 0.5 and TensorRT-LLM 1.2.
_NAMED = {
    OF_VLLM: rb'\{[^}\n]*\bblock_size="(\d+)"',
    "sglang:cache_config_info": rb'\{[^}\n]*\bpage_size="(\d+)"',
    "trtllm_kv_cache_tokens_per_block": rb"(?:\{[^}\n]*\})? (\d+)(?:\.0)?\s",
}
_PATTERNS = {name: re.compile(b"^" + name.encode() + rest, re.MULTILINE) for name, rest in _NAMED.items()}
LLAMA_CPP = "llamacpp:"  # the names of a server whose cache has no blocks, but single tokens


def read(metrics: bytes) -> CacheBlock | None:
    """Read the size of a block from Prometheus metrics; None if they do not have it."""
    for name, pattern in _PATTERNS.items():
        if (found := pattern.search(metrics)) and int(found[1]) > 0:
            return CacheBlock(int(found[1]), name)
    if re.search(b"^" + LLAMA_CPP.encode(), metrics, re.MULTILINE):
        return CacheBlock(1, "llama.cpp, which has no blocks")
    return None

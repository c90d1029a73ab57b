"""Engines of which loadgen's own tests have never started a server: their commands follow the engines' sources."""

# Name of the engine: where it was not started; empty: nowhere.
NEVER_STARTED = {"vllm": "on a GPU", "vllm-ascend": "", "sglang": "", "trtllm": "", "mindie": ""}

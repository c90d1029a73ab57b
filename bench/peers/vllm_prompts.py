"""The random prompts of `vllm bench serve`, a hash a line; the interpreter that has vLLM runs this.

python vllm_prompts.py TOKENIZER SEED COUNT INPUT_TOKENS
"""

import hashlib
import sys

from vllm.benchmarks.datasets import RandomDataset
from vllm.tokenizers import get_tokenizer

seed, count, input_tokens = map(int, sys.argv[2:])
dataset = RandomDataset(random_seed=seed)
for each in dataset.sample(
    tokenizer=get_tokenizer(sys.argv[1]), num_requests=count, input_len=input_tokens
):
    print("prompt", hashlib.sha256(each.prompt.encode()).hexdigest())

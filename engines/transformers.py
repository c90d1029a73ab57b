"""`transformers serve`: Hugging Face's own server."""

from collections.abc import Mapping
from typing import Any

from loadgen.engines.command import Command
from loadgen.engines.engine import Engine, Probes
from loadgen.engines.table import Table
from loadgen.engines.ways import Flag


class Transformers(Command):
    """Requests must name the model as the server was told it, a path in full."""

    def served(self, model: str, knobs: Mapping[str, Any]) -> str:
        """The model as it was given."""
        return model


TABLE = Table(
    "transformers",
    {
        "host": (Flag("--host"),),
        "port": (Flag("--port"),),
        "max_batched_tokens": (Flag("--cb-max-batch-tokens"),),
        "quantization": (Flag("--quantization"),),
        "attention_backend": (Flag("--attn-implementation"),),
        "memory_fraction": (Flag("--cb-max-memory-percent"),),
    },
    nearest={
        "served_name": "the model itself: requests name it as it was given",
        "kv_dtype": "--dtype, for weights and cache together",
        "reasoning_parser": "--reasoning on, off or auto",
        "context_len": "--cb-num-blocks, of --cb-block-size tokens each, for all requests together",
    },
)

engine: Engine = Transformers(
    name="transformers",
    head=("transformers", "serve"),
    table=TABLE,
    probes=Probes(health="/health"),
    packages=("transformers",),
    env={"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"},
    always=("--continuous-batching",),  # without it requests are answered one after the other
)

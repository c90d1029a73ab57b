"""`transformers serve`: the server of Hugging Face's library transformers."""

from collections.abc import Mapping
from typing import Any

from loadgen.engines.kinds.engine import CommandEngine, Engine, Probes
from loadgen.engines.kinds.knob_forms import plain_flags
from loadgen.engines.kinds.knob_table import KnobTable


class Transformers(CommandEngine):
    """`transformers serve`, whose requests must name the model exactly as the server's command
    does.
    """

    def served_name(self, model: str, knobs: Mapping[str, Any]) -> str:
        """Return the model as the user gave it."""
        return model


TABLE = KnobTable(
    "transformers",
    plain_flags(
        {
            "host": "--host",
            "port": "--port",
            "max_batched_tokens": "--cb-max-batch-tokens",
            "quantization": "--quantization",
            "attention_backend": "--attn-implementation",
            "memory_fraction": "--cb-max-memory-percent",
        }
    ),
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

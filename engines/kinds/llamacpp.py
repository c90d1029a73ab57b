"""llama.cpp: `llama-server` if it is in PATH, else the same server from the Python package
xllamacpp.
"""

import importlib.metadata
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.engines.kinds.engine import CommandEngine, Engine, Launch, Place, Probes, is_path
from loadgen.engines.kinds.knob_forms import Flag, FlagGroup, Switch, plain_flags
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import parse_speculation
from loadgen.engines.program_version import program_version
from loadgen.errors import BadInput

BINARY = "llama-server"
# -P: the working directory's files must not shadow modules.
RUNNER = (sys.executable, "-P", "-m", "loadgen.engines.llamacpp_server")
SLOTS = 4  # the default of the releases that choose a number


def _context(tokens: int, knobs: Mapping[str, Any]) -> list[str]:
    """Return the flags of a context size; the server divides it over its slots, so their number
    is set with it.
    """
    slots = knobs.get("max_seqs", SLOTS)
    words = ["--ctx-size", str(tokens * slots)]
    return words if "max_seqs" in knobs else [*words, "--parallel", str(slots)]


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> list[str]:
    draft = parse_speculation(value, {"draft_model": "draft"})
    if draft.model is None:
        raise BadInput(
            "speculative.model", "is missing", "give the path of a .gguf file with the draft model"
        )
    return ["--model-draft", draft.model, "--spec-draft-n-max", str(draft.tokens)]


TABLE = KnobTable(
    "llamacpp",
    {
        **plain_flags(
            {
                "host": "--host",
                "port": "--port",
                "served_name": "--alias -a",
                "max_seqs": "--parallel -np",
                "reasoning_parser": "--reasoning-format",
            }
        ),
        "model": (
            FlagGroup({"--model": ("-m",), "--hf-repo": ("-hf", "-hfr"), "--model-url": ("-mu",)}),
        ),
        "context_len": (
            FlagGroup(
                {"--ctx-size": ("-c",), "--parallel": ("-np",)},
                convert=_context,
                note=f"times max_seqs, or {SLOTS}",
            ),
        ),
        "max_batched_tokens": (
            FlagGroup(
                {"--batch-size": ("-b",), "--ubatch-size": ("-ub",)},
                convert=lambda tokens, knobs: [
                    "--batch-size",
                    str(tokens),
                    "--ubatch-size",
                    str(tokens),
                ],
            ),
        ),
        "prefix_cache": (Switch(("--cache-prompt",), ("--no-cache-prompt",)),),
        "kv_dtype": (
            FlagGroup(
                {"--cache-type-k": ("-ctk",), "--cache-type-v": ("-ctv",)},
                convert=lambda kind, knobs: ["--cache-type-k", kind, "--cache-type-v", kind],
            ),
        ),
        "attention_backend": (Flag("--flash-attn", ("-fa",), note="on, off or auto"),),
        "speculative": (
            FlagGroup(
                {
                    "--model-draft": ("-md", "--spec-draft-model"),
                    "--spec-draft-n-max": ("--draft-max", "--draft"),
                },
                convert=_speculative,
            ),
        ),
    },
    nearest={
        "tensor_parallel": "--split-mode row with --tensor-split",
        "pipeline_parallel": "--split-mode layer with --tensor-split",
        "data_parallel": "several servers",
        "expert_parallel": "--n-cpu-moe, which leaves experts to the CPU",
        "chunked_prefill": "max_batched_tokens: prompts are always computed in pieces of that size",
        "quantization": "the type inside the .gguf file: name another file as the model",
        "memory_fraction": "--n-gpu-layers or --fit",
    },
)


class LlamaCpp(CommandEngine):
    """llama.cpp as one of two programs with the same flags."""

    def version(self) -> str | None:
        """Return the build number of the binary, or the version of xllamacpp."""
        if self.release or shutil.which(BINARY):
            return self.release or program_version(BINARY, r"version: (\d+)")
        try:
            return importlib.metadata.version("xllamacpp")
        except importlib.metadata.PackageNotFoundError:
            return None

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """Return how to serve `model`, the path of a .gguf file or, if the binary is installed, a
        hub name.

        Raises:
            BadInput: As `Engine.launch`, or a hub name is given without the binary.
        """
        if not is_path(model) and not shutil.which(BINARY):
            raise BadInput(
                "model",
                f"{model!r} is not a file, and {BINARY} is not installed",
                "give the path of a .gguf file",
            )
        return super().launch(model, knobs, raw, place)

    def command(self, model: str) -> tuple[str, ...]:
        """Return the binary, or the Python module that runs xllamacpp, and the model."""
        return *(self.head if shutil.which(BINARY) else RUNNER), *_model(model)

    def shorthand_command(self, model: str) -> tuple[str, ...]:
        """Return the binary and the model, whichever program runs."""
        return *self.head, *_model(model)


def _model(model: str) -> tuple[str, str]:
    return ("-m" if is_path(model) else "-hf", model)


engine: Engine = LlamaCpp(
    name="llamacpp",
    head=(BINARY,),
    table=TABLE,
    probes=Probes(health="/health", metrics="/metrics", version="/props", resolved="/props"),
    always=("--metrics",),
)

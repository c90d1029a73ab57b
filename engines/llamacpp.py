"""llama.cpp: its `llama-server` where PATH has it, else the same server inside the Python package xllamacpp."""

import importlib.metadata
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.engines import speculation
from loadgen.engines.command import Command, is_path
from loadgen.engines.engine import Engine, Launch, Place, Probes
from loadgen.engines.table import Table
from loadgen.engines.versions import reported
from loadgen.engines.ways import Flag, Switch, Words
from loadgen.errors import BadInput

BINARY = "llama-server"
# -P: the working directory's files must not shadow modules.
RUNNER = (sys.executable, "-P", "-m", "loadgen.engines.llamacpp_server")
SLOTS = 4  # how many the server makes by itself, in the releases that choose


def _context(tokens: int, knobs: Mapping[str, Any]) -> list[str]:
    """The server shares its context over its slots, so their number must be said with it."""
    slots = knobs.get("max_seqs", SLOTS)
    words = ["--ctx-size", str(tokens * slots)]
    return words if "max_seqs" in knobs else [*words, "--parallel", str(slots)]


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> list[str]:
    draft = speculation.read(value, {"draft_model": "draft"})
    if draft.model is None:
        raise BadInput("speculative.model", "there is none", "give the path of a .gguf file that drafts")
    return ["--model-draft", draft.model, "--spec-draft-n-max", str(draft.tokens)]


TABLE = Table(
    "llamacpp",
    {
        "host": (Flag("--host"),),
        "port": (Flag("--port"),),
        "model": (Words({"--model": ("-m",), "--hf-repo": ("-hf", "-hfr"), "--model-url": ("-mu",)}),),
        "served_name": (Flag("--alias", ("-a",)),),
        "context_len": (
            Words({"--ctx-size": ("-c",), "--parallel": ("-np",)}, of=_context, note=f"times max_seqs, or {SLOTS}"),
        ),
        "max_batched_tokens": (
            Words(
                {"--batch-size": ("-b",), "--ubatch-size": ("-ub",)},
                of=lambda tokens, knobs: ["--batch-size", str(tokens), "--ubatch-size", str(tokens)],
            ),
        ),
        "max_seqs": (Flag("--parallel", ("-np",)),),
        "prefix_cache": (Switch(("--cache-prompt",), ("--no-cache-prompt",)),),
        "kv_dtype": (
            Words(
                {"--cache-type-k": ("-ctk",), "--cache-type-v": ("-ctv",)},
                of=lambda kind, knobs: ["--cache-type-k", kind, "--cache-type-v", kind],
            ),
        ),
        "attention_backend": (Flag("--flash-attn", ("-fa",), note="on, off or auto"),),
        "speculative": (
            Words(
                {"--model-draft": ("-md", "--spec-draft-model"), "--spec-draft-n-max": ("--draft-max", "--draft")},
                of=_speculative,
            ),
        ),
        "reasoning_parser": (Flag("--reasoning-format"),),
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


class LlamaCpp(Command):
    """Two programs with the same flags."""

    def version(self) -> str | None:
        """The build number of the binary, or the version of xllamacpp."""
        if self.release or shutil.which(BINARY):
            return self.release or reported(BINARY, r"version: (\d+)")
        try:
            return importlib.metadata.version("xllamacpp")
        except importlib.metadata.PackageNotFoundError:
            return None

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """See `Engine.launch`; the model is the path of a .gguf file, or with the binary also a hub name.

        Raises:
            BadInput: As there.
        """
        if not is_path(model) and not shutil.which(BINARY):
            raise BadInput(
                "model", f"{model!r} is no file, and no {BINARY} is installed", "give the path of a .gguf file"
            )
        return super().launch(model, knobs, raw, place)

    def command(self, model: str) -> tuple[str, ...]:
        """The binary, or our runner."""
        return *(self.head if shutil.which(BINARY) else RUNNER), *_model(model)

    def page(self, model: str) -> tuple[str, ...]:
        """The binary, whichever runs."""
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

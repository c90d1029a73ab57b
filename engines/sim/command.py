"""The simulated engine as any other: one command line, with vLLM's flags."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadgen.engines import vllm
from loadgen.engines.command import Command
from loadgen.engines.engine import Engine, Launch, Place, Probes
from loadgen.engines.sim.vocabulary import TOKENIZER
from loadgen.engines.table import Table

SAID = {"host", "port", "served_name", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_len"}
SAID |= {"max_batched_tokens", "max_seqs", "chunked_prefill", "prefix_cache", "quantization", "kv_dtype"}
SAID |= {"memory_fraction"}
TEMPLATE = "--chat-template-tokens"
TABLE = Table("sim", {name: ways for name, ways in vllm.TABLE.ways.items() if name in SAID})


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulator(Command):
    """A part of loadgen, which serves whatever it is told, as if it were that.

    Attributes:
        default_model: What it serves where its user names nothing.
    """

    default_model: str = "sim"

    def version(self) -> str:
        """Loadgen's."""
        from loadgen.version import __version__

        return __version__

    def launch(self, model: str, knobs: Mapping[str, Any], raw: Sequence[str], place: Place) -> Launch:
        """See `Engine.launch`."""
        launched = super().launch(model, knobs, raw, place)
        template = [values[0] for name, *values in self.table.spelling.said(raw) if name == TEMPLATE and values]
        known = int(template[-1]) if template and template[-1].isdecimal() else 0
        return replace(launched, tokenizer=str(TOKENIZER), template_tokens=known)


engine: Engine = Simulator(
    name="sim",
    # -P: the working directory's files must not shadow modules.
    head=(sys.executable, "-P", "-m", "loadgen.engines.sim"),
    table=TABLE,
    probes=Probes(
        health="/health",
        metrics="/metrics",
        version="/version",
        resolved="/server_info",
        flush=("/reset_prefix_cache",),
    ),
    devices="",
)

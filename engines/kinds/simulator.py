"""The simulator as an engine: one command line, with vLLM's flags."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadgen.engines.kinds import vllm
from loadgen.engines.kinds.engine import CommandEngine, Engine, Launch, Place, Probes
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.sim.tokenizer import TOKENIZER

if TYPE_CHECKING:
    from loadgen.engines.sim.settings import SimSettings

SUPPORTED_KNOBS = {
    "host",
    "port",
    "served_name",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "context_len",
    "max_batched_tokens",
    "max_seqs",
    "chunked_prefill",
    "prefix_cache",
    "quantization",
    "kv_dtype",
    "memory_fraction",
}
# -P: the working directory's files must not shadow modules.
HEAD = (sys.executable, "-P", "-m", "loadgen.engines.sim")
TEMPLATE_FLAG = "--chat-template-tokens"
TABLE = KnobTable(
    "sim", {name: forms for name, forms in vllm.TABLE.forms.items() if name in SUPPORTED_KNOBS}
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulator(CommandEngine):
    """The simulator; it serves any model name.

    Attributes:
        default_model: The model name if the user gives none.
    """

    default_model: str = "sim"

    def version(self) -> str:
        """Return loadgen's version."""
        from loadgen.version import __version__

        return __version__

    def launch(
        self, model: str, knobs: Mapping[str, Any], raw: Sequence[str], place: Place
    ) -> Launch:
        """Return how to serve `model`, as `Engine.launch`; tokenizer and template are the
        simulator's own.

        Raises:
            BadInput: As `Engine.launch`, and if the simulator would refuse its command line.
        """
        launch = super().launch(model, knobs, raw, place)
        from loadgen.engines.sim import deployment, settings  # slow to import

        with contextlib.suppress(
            deployment.StartFailed
        ):  # it starts, and then fails as a real engine does
            settings.read(launch.argv[len(self.head) :], add_help=False)
        template = [
            values[0]
            for name, *values in self.table.flag_syntax.parse(raw)
            if name == TEMPLATE_FLAG and values
        ]
        tokens = int(template[-1]) if template and template[-1].isdecimal() else 0
        return replace(launch, tokenizer=str(TOKENIZER), template_tokens=tokens)


def settings_of(launch: Launch) -> "SimSettings | None":
    """Return the settings of a simulator that is started so; None: it does not start."""
    from loadgen.engines.sim import deployment, settings  # slow to import

    try:
        return settings.read(launch.argv[len(HEAD) :], add_help=False)[0]
    except deployment.StartFailed:
        return None


engine: Engine = Simulator(
    name="sim",
    head=HEAD,
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

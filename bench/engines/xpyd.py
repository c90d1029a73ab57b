"""xpyd-sim, an independent simulator: a server written by others, whose streams look otherwise
than ours.
"""

from loadgen.engines.kinds.engine import CommandEngine, Probes
from loadgen.engines.kinds.knob_forms import Flag
from loadgen.engines.kinds.knob_table import KnobTable


class Xpyd(CommandEngine):
    """Its program takes the model as a flag."""

    def command(self, model: str) -> tuple[str, ...]:
        """The program; the model is what requests name."""
        return self.head


TABLE = KnobTable(
    "xpyd-sim",
    {
        "host": (Flag("--host"),),
        "port": (Flag("--port"),),
        "served_name": (Flag("--model"),),
        "context_len": (Flag("--max-model-len"),),
        "max_batched_tokens": (Flag("--max-num-batched-tokens"),),
        "max_seqs": (Flag("--max-num-seqs"),),
    },
    abbreviates=True,
)

engine = Xpyd(
    name="xpyd-sim",
    head=("xpyd-sim", "serve"),
    table=TABLE,
    probes=Probes(health="/health", metrics="/metrics"),
    packages=("xpyd-sim",),
)

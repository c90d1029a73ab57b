"""The simulated engine: an OpenAI-compatible server with a continuous-batching cost model instead of a model."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.engines.engine import Launch, Place, Probes
from loadgen.engines.sim.settings import SimSettings, flag
from loadgen.engines.sim.vocabulary import TOKENIZER
from loadgen.errors import BadInput

# Engine-neutral names of its knobs, so that a study can be tried on it.
NEUTRAL = {
    "context_len": "max_model_len",
    "max_batched_tokens": "max_num_batched_tokens",
    "max_seqs": "max_num_seqs",
}


class SimEngine:
    """The simulator; its knobs are the fields of `SimSettings`, and the neutral names of some."""

    name = "sim"
    probes = Probes(health="/health", metrics="/metrics", version="/version")

    def version(self) -> str:
        """It is a part of loadgen, so the two have one version."""
        from loadgen import __version__

        return __version__

    def knobs(self) -> Mapping[str, str]:
        """See `Engine.knobs`."""
        return {name: flag(own) for name, own in NEUTRAL.items()}

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """How to simulate a server of `model`, whatever its name.

        Raises:
            BadInput: A knob is unknown or has no usable value.
        """
        known: dict[str, Any] = {field.name: type(field.default) for field in dataclasses.fields(SimSettings)}
        for name in ("host", "port", "served_model_name"):
            del known[name]
        values: dict[str, Any] = {"host": place.host, "port": place.port, "served_model_name": model}
        for name, value in knobs.items():
            own = NEUTRAL.get(name, name)
            if own not in known:
                names = ", ".join([*known, *NEUTRAL])
                raise BadInput(name, "the simulated engine has no such knob", f"use one of {names}")
            if own in values:
                raise BadInput(name, f"is the same knob as {own}, which is given too", "give one of them")
            try:
                values[own] = known[own](value)
            except (TypeError, ValueError):
                raise BadInput(name, f"{value!r} is no {known[own].__name__}", "give a number") from None
        settings = SimSettings(**values)
        # -P: the working directory's files must not shadow modules.
        command = (sys.executable, "-P", "-m", "loadgen.engines.sim", *settings.argv(), *raw)
        return Launch(
            command,
            f"http://{place.host}:{place.port}",
            model,
            tokenizer=str(TOKENIZER),
            template_tokens=settings.chat_template_tokens,
        )

    def serve(self, argv: Sequence[str]) -> int:
        """Run a server in this process until interrupted; return the exit code."""
        from loadgen.engines.sim.server import main  # the compiled write path is needed only here

        return main(argv, prog="loadgen serve sim")


engine = SimEngine()

"""The simulated engine: an OpenAI-compatible server with a continuous-batching cost model instead of a model."""

import dataclasses
import os
import sys
from typing import Any

from loadgen.engines.launcher import Server, launch
from loadgen.engines.sim.settings import SimSettings
from loadgen.engines.sim.vocabulary import TOKENIZER
from loadgen.errors import BadInput


class SimEngine:
    """Starts simulated servers; knobs are the fields of `SimSettings`."""

    name = "sim"

    def begin(self, **knobs: Any) -> Server:
        """Start a server on a free port (unless `port` is given) and return at once.

        The process dies with the *thread* that calls this, so call it from one that lives as long as the server.

        Raises:
            BadInput: A knob is unknown or has no usable value.
        """
        known = [field.name for field in dataclasses.fields(SimSettings)]
        for name in knobs:
            if name not in known:
                raise BadInput(name, "the simulated engine has no such knob", f"use one of {', '.join(known)}")
        settings = SimSettings(**{"port": 0, **knobs})
        # -P: the working directory's files must not shadow modules.
        command = [sys.executable, "-P", "-m", "loadgen.engines.sim", "--die-with-parent", str(os.getpid())]
        return launch(
            self.name,
            command + settings.argv(),
            model=settings.served_model_name,
            tokenizer=str(TOKENIZER),
            template_tokens=settings.chat_template_tokens,
        )

    def start(self, **knobs: Any) -> Server:
        """Start a server and return when it listens.

        Raises:
            BadInput: As `begin`.
            EngineError: It did not come up.
        """
        server = self.begin(**knobs)
        server.ready()
        return server

    def serve(self, argv: list[str]) -> int:
        """Run a server in the foreground until interrupted; return the exit code."""
        from loadgen.engines.sim.server import main  # the compiled write path is needed only here

        return main(argv, prog="loadgen serve sim")


engine = SimEngine()

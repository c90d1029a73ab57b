"""llama.cpp's server as its Python package has it, as an engine for the launcher."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadgen.engines import Launch, Place, Probes

MODEL = "smollm2"


class LlamaCpp:
    """The only raw flag is another model file."""

    name = "llamacpp"
    probes = Probes(health="/health", metrics="/metrics", version="/props", resolved="/props")

    def version(self) -> str | None:
        return None

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        script = Path(__file__).with_name("llamacpp_server.py")
        argv = (sys.executable, str(script), str(place.port), *raw)
        return Launch(argv, f"http://{place.host}:{place.port}", model)

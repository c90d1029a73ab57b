"""A server that somebody else started: nothing to launch, only to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.engines.engine import Engine, Launch, Place, Probes
from loadgen.errors import BadInput


@dataclass(frozen=True)
class External:
    """Any server with the OpenAI API, of which nothing else is known.

    Attributes:
        name: In commands and results.
        probes: What such servers share.
    """

    name: str = "external"
    probes: Probes = Probes(health="/v1/models", metrics="/metrics")

    def version(self) -> str | None:
        """Nobody knows."""
        return None

    def knobs(self) -> Mapping[str, str]:
        """None: it is as it is."""
        return {}

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """Refuse.

        Raises:
            BadInput: Always.
        """
        remedy = "measure it with `loadgen run --base-url URL`"
        raise BadInput("engine", "an external server runs already and is not started", remedy)


engine: Engine = External()

"""External server: one that runs already; loadgen sends requests to it and does not start it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.engines.kinds.engine import Engine, Launch, Place, Probes
from loadgen.errors import BadInput


@dataclass(frozen=True)
class External:
    """Any server with the OpenAI API.

    Attributes:
        name: The engine's name in commands and results.
        probes: URL paths that such servers have in common.
    """

    name: str = "external"
    probes: Probes = Probes(health="/v1/models", metrics="/metrics")

    def version(self) -> str | None:
        """Return None: the version is unknown."""
        return None

    def knobs(self) -> Mapping[str, str]:
        """Return no knobs: the server cannot be configured."""
        return {}

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """Refuse to start a server.

        Raises:
            BadInput: Always.
        """
        remedy = "measure it with `loadgen run --base-url URL`"
        raise BadInput("engine", "an external server runs already and cannot be started", remedy)


engine: Engine = External()

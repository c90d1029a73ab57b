"""A server that loadgen does not know: an engine describes how to start it, and starts nothing.

python examples/custom_engine.py    starts the program of loadgen's simulator, as if it were yours
"""

import sys
from collections.abc import Mapping, Sequence

from custom_dataset import Sums

import loadgen
from loadgen.engines import Launch, Launcher, Place, Probes

PROGRAM = (sys.executable, "-m", "loadgen.engines.sim")  # yours: ("my-server", "serve")
# Engine-neutral names, and the engine's own flags.
KNOBS = {"max_seqs": "--max-num-seqs", "context_len": "--max-model-len"}


class Mine:
    """A server with the OpenAI API."""

    name = "mine"
    probes = Probes(health="/health", metrics="/metrics", version="/version")

    def version(self) -> str | None:
        """The installed version; None if it is unknown without a start."""
        return None

    def knobs(self) -> Mapping[str, str]:
        """Its knobs, and its flag for each."""
        return KNOBS

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """The command, for the host and port that the launcher chose; `raw` are the engine's own
        flags.
        """
        for knob in knobs.keys() - KNOBS.keys():
            raise loadgen.BadInput(knob, "it has no such knob", f"choose from {', '.join(KNOBS)}")
        flags = [word for knob, value in knobs.items() for word in (KNOBS[knob], str(value))]
        where = ["--host", place.host, "--port", str(place.port)]
        return Launch((*PROGRAM, model, *where, *flags, *raw), place.base_url, model)


engine = Mine()


def main() -> None:
    """Start it, measure it, and stop it completely."""
    with Launcher().begin(engine, "tiny", {"max_seqs": 64}, raw=["--step-base-ms", "5"]) as server:
        settings = loadgen.RunSettings(
            base_url=server.base_url,
            model=server.model,
            backend="openai-chat",
            request_rate=50,
            num_prompts=100,
        )
        result = loadgen.run_sync(settings, dataset=Sums(seed=0))
    print(
        f"{result.verdict}: {result.numbers.completed} answers, median TPOT "
        f"{result.tpot.p50_ms:.1f} ms"
    )


if __name__ == "__main__":
    main()

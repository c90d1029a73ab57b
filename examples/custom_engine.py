"""A server that loadgen does not know: an engine says how it is started, and starts nothing itself.

python examples/custom_engine.py    starts the program of loadgen's simulator, as if it were a server of yours
"""

import sys
from collections.abc import Mapping, Sequence

from custom_dataset import Sums

import loadgen
from loadgen.engines import Launch, Launcher, Place, Probes

PROGRAM = (sys.executable, "-m", "loadgen.engines.sim")  # of yours: ("my-server", "serve")
KNOBS = {"max_seqs": "--max-num-seqs", "context_len": "--max-model-len"}  # names that engines share, and its own


class Mine:
    """A server with the OpenAI API."""

    name = "mine"
    probes = Probes(health="/health", metrics="/metrics", version="/version")

    def version(self) -> str | None:
        """The version that is installed; None where that cannot be told without starting it."""
        return None

    def knobs(self) -> Mapping[str, str]:
        """The knobs that it has, and what it calls them."""
        return KNOBS

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place) -> Launch:
        """The command, for the host and port that the launcher has found; `raw` are its own flags."""
        for knob in knobs.keys() - KNOBS.keys():
            raise loadgen.BadInput(knob, "it has no such knob", f"choose from {', '.join(KNOBS)}")
        flags = [word for knob, value in knobs.items() for word in (KNOBS[knob], str(value))]
        where = ["--host", place.host, "--port", str(place.port)]
        return Launch((*PROGRAM, model, *where, *flags, *raw), place.base_url, model)


engine = Mine()


def main() -> None:
    """Start it, measure it, and leave nothing of it behind."""
    with Launcher().begin(engine, "tiny", {"max_seqs": 64}, raw=["--step-base-ms", "5"]) as server:
        settings = loadgen.RunSettings(
            base_url=server.base_url, model=server.model, backend="openai-chat", request_rate=50, num_prompts=100
        )
        result = loadgen.run_sync(settings, dataset=Sums(seed=0))
    print(f"{result.verdict}: {result.numbers.completed} answers, median TPOT {result.tpot.p50_ms:.1f} ms")


if __name__ == "__main__":
    main()

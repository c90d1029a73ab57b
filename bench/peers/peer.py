"""Peer: another load generator, or ours: how it is told what to do, and how its report is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.engines.environments import Recipe
from bench.performance.load import Load

PROMPT_TOKENS = 128
MODEL = "metronome"
METRICS = ("ttft", "itl", "tpot")
PERCENTILES = (50, 99)


@dataclass(frozen=True, slots=True)
class Reported:
    """What a client says of one run.

    Attributes:
        tokens: Output tokens that it counted.
        times_ms: Of "ttft", "itl" (the gaps of all streams together) and "tpot" (a mean for each
            request), the percentiles that it tells; those that it does not are left out.
        says: What it says of whether it kept up, short; empty: nothing.
        measuring_mb: The most memory of the process that measures, where it tells.
    """

    tokens: int
    times_ms: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    says: str = ""
    measuring_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one peer.

    Attributes:
        url: Of the server, without a path.
        load: What is asked of it, at constant gaps where the peer can.
        tokenizer: The folder of a tokenizer; prompts have 128 of its tokens.
        folder: Empty, for what the peer writes.
        programs: Of the peer's environment; of the tests' own where it has none.
    """

    url: str
    load: Load
    tokenizer: Path
    folder: Path
    programs: Path


class Peer(Protocol):
    """A load generator.

    Attributes:
        name: What tables call it.
        recipe: Its environment; None: that of the tests.
        env: Variables of its own; an empty one is taken away.
        poisson: Whether it knows no constant arrivals.
        settings: What it is told beside the load, in words for the page.
    """

    name: str
    recipe: Recipe | None
    env: Mapping[str, str]
    poisson: bool
    settings: str

    def command(self, task: Task) -> list[str]:
        """The command that carries a task out; writes what that needs into the task's folder."""

    def report(self, folder: Path, said: str) -> Reported:
        """Read what it has written into its folder, and what it has said.

        Raises:
            LookupError, ValueError, OSError: That is no report.
        """


def words(flags: Mapping[str, object]) -> list[str]:
    """Flags and their values as words of a command."""
    return [str(word) for pair in flags.items() for word in pair]

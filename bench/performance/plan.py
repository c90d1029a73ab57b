"""Plan: how much the bench measures."""

from dataclasses import dataclass, replace
from typing import Self

from bench.performance.load import STEP_MS, Load


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        loads: What all clients send, for ten seconds: W1 has long answers, W2 short ones, W3 is
            heavy.
        memory: What loadgen alone sends while its memory is looked at; None: nothing.
        many: Requests of the run whose start-up is measured beside the default one's; 0: none is.
        ways: Whether loadgen also takes part writing every request to a file, and with two workers.
        rounds: How often the clients take turns.
        repeats: How often a short command is called; 0: start-up is not measured.
        step_ms: Time between two tokens.
    """

    loads: tuple[Load, ...] = (
        Load("W1", rate=200, count=2_000, tokens=50),
        Load("W2", rate=500, count=5_000, tokens=2),
        Load("W3", rate=1_000, count=12_000, tokens=100),
    )
    memory: Load | None = Load("memory", rate=4_000, count=100_000, tokens=2)
    many: int = 100_000
    ways: bool = True
    rounds: int = 5
    repeats: int = 5
    step_ms: float = STEP_MS

    def only(self, name: str) -> Self:
        """Return the plan with one load, sent by one process of loadgen and the other clients."""
        loads = tuple(load for load in self.loads if load.name == name)
        return replace(self, loads=loads, memory=None, many=0, ways=False, repeats=0)


QUICK = Plan(
    loads=(
        Load("W1", rate=200, count=100, tokens=50),
        Load("W2", rate=500, count=100, tokens=2),
        Load("W3", rate=1_000, count=200, tokens=100),
    ),
    memory=Load("memory", rate=1_000, count=200, tokens=2),
    many=0,
    ways=False,
    rounds=1,
    repeats=1,
    step_ms=5.0,
)

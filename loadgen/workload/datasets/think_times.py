"""`ThinkTimes`: the times before the turns of the sessions of a data set."""

from dataclasses import dataclass
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import ThinkTime
from loadgen.util.clock import NS_PER_S
from loadgen.workload.uniforms import uniforms


@dataclass(frozen=True, slots=True)
class ThinkTimes:
    """Draws a time for each turn by itself.

    Attributes:
        law: The distribution of the times.
        seed: The seed of the draws: that of the arrivals, because both decide when requests are due.
    """

    law: ThinkTime
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the times of `--think-time`.

        Raises:
            BadInput: Its value is invalid.
        """
        return cls(ThinkTime.parse(settings.think_time), seed_of(settings, "arrivals"))

    def before_ns(self, session: int, turn: int) -> int:
        """Return the time before a turn, ns: none before the first, which is number 0."""
        if turn == 0:
            return 0
        drawn = uniforms(2, self.seed, "think", session, turn) if self.law.varies else ()
        return int(self.law.draw_s(drawn) * NS_PER_S)

    def provenance(self) -> dict[str, Any]:
        """Return the mean, and whether the times vary, as JSON."""
        return {"think_time_s": self.law.mean_s, "think_time_varies": self.law.varies}

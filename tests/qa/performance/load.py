"""Load: what every client sends to the same server, and how that server is set up."""

from dataclasses import dataclass
from typing import Protocol

from loadgen.engines import Server
from tests.helpers.sim_server import simulated

# Events of a streamed chat answer beside its tokens: the role, the finish reason, the usage and [DONE].
EVENTS_BESIDE_TOKENS = 4
PROMPT_TOKENS = 128
STEP_MS = 20.0


class Served(Protocol):
    """A server that runs.

    Attributes:
        base_url: Scheme, host and port.
        model: Its name in requests.
        tokenizer: Of the prompts.
    """

    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def tokenizer(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Load:
    """`count` requests at a constant `rate` per second, each for an answer of `tokens` tokens.

    `warm` is how many connections are open before the first; None: those of two seconds.
    """

    name: str
    rate: int
    count: int
    tokens: int
    warm: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.rate:,} requests/s of {self.tokens} tokens"

    @property
    def events(self) -> int:
        """Events on the wire of one answer."""
        return self.tokens + EVENTS_BESIDE_TOKENS

    @property
    def connections(self) -> int:
        """Connections open before the first request, the same for all clients."""
        return min(2 * self.rate, self.count, 4096) if self.warm is None else self.warm


def serve(step_ms: float = STEP_MS) -> Server:
    """Start a simulator of which every step takes `step_ms`, whatever its batch, so that all it lacks is a core."""
    return simulated(
        step_base_ms=step_ms,
        prefill_us_per_token=0.0,
        decode_us_per_seq=0.0,
        frontend_ms=0.0,
        max_num_seqs=1 << 16,
        max_num_batched_tokens=1 << 24,
        num_kv_tokens=1 << 26,
    )

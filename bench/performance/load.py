"""Load: what every client sends to the same server, and how that server is set up."""

from dataclasses import dataclass
from typing import Protocol

from loadgen.engines import Server
from loadgen.util.number_format import plural
from tests.helpers.sim_server import simulated

# Events of a streamed chat answer beside its tokens: the role, the finish reason, the usage and
# [DONE].
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
    def base_url(self) -> str:
        """URL of the server."""

    @property
    def model(self) -> str:
        """Name of the model in requests."""

    @property
    def tokenizer(self) -> str | None:
        """A tokenizer that counts as the server does; None: unknown."""


@dataclass(frozen=True, slots=True)
class Load:
    """`count` requests, each for an answer of `tokens` tokens.

    Attributes:
        rate: Requests per second, at constant gaps; infinite where `streams` says how many are in
            flight.
        warm: How many connections are open before the first request; None: those of two seconds.
        streams: How many are in flight at a time, each followed by the next as it ends; None: as
            the rate has it.
        chat: Whether they are chats; else completions, whose streams begin with the first token.
    """

    name: str
    rate: float
    count: int
    tokens: int
    warm: int | None = None
    streams: int | None = None
    chat: bool = True

    def __str__(self) -> str:
        load = (
            f"{self.rate:,} requests/s"
            if self.streams is None
            else f"{plural(self.streams, 'stream')} at a time"
        )
        return f"{self.name}: {load} of {self.tokens} tokens"

    @property
    def events(self) -> int:
        """Events on the wire of one answer."""
        return self.tokens + EVENTS_BESIDE_TOKENS

    @property
    def connections(self) -> int:
        """Connections open before the first request, the same for all clients."""
        return int(min(2 * self.rate, self.count, 4096)) if self.warm is None else self.warm


def serve(step_ms: float = STEP_MS) -> Server:
    """Start a simulator of which every step takes `step_ms`, whatever its batch, so that all it
    lacks is a core.
    """
    return simulated(
        step_base_ms=step_ms,
        prefill_us_per_token=0.0,
        decode_us_per_seq=0.0,
        frontend_ms=0.0,
        max_num_seqs=1 << 16,
        max_num_batched_tokens=1 << 24,
        num_kv_tokens=1 << 26,
    )

"""Load: what every client sends to the same server, and how that server is set up."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from loadgen.engines import Server
from loadgen.util.number_format import plural
from tests.helpers.command_line import TOKENIZER, environment
from tests.helpers.sim_server import simulated
from tests.helpers.source import ROOT

PROMPT_TOKENS = 128
STEP_MS = 20.0
CHAT, COMPLETIONS, EMBEDDINGS = "openai-chat", "openai", "openai-embeddings"


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
        backend: CHAT; COMPLETIONS, whose streams begin with the first token; or EMBEDDINGS, whose
            answers come in one piece, of no tokens.
    """

    name: str
    rate: float
    count: int
    tokens: int
    warm: int | None = None
    streams: int | None = None
    backend: str = CHAT

    def __str__(self) -> str:
        load = (
            f"{self.rate:,} requests/s"
            if self.streams is None
            else f"{plural(self.streams, 'stream')} at a time"
        )
        answers = "embeddings" if self.backend == EMBEDDINGS else f"{self.tokens} tokens"
        return f"{self.name}: {load} of {answers}"

    @property
    def connections(self) -> int:
        """Connections open before the first request, the same for all clients."""
        return int(min(2 * self.rate, self.count, 4096)) if self.warm is None else self.warm


@dataclass(frozen=True, slots=True)
class TestServer:
    """One of the test servers, as clients see it.

    Attributes:
        base_url: Scheme, host and port.
        model: Its name in requests.
        pid: Its process.
        tokenizer: Of the prompts.
    """

    base_url: str
    model: str
    pid: int
    tokenizer: str = TOKENIZER


@contextlib.contextmanager
def serving(command: Sequence[str], model: str) -> Iterator[TestServer]:
    """Run a test server for the length of a `with` block.

    Args:
        command: What starts it; the last word of the first line that it prints is its URL.
        model: What it serves.
    """
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield TestServer(process.stdout.readline().split()[-1], model, process.pid)
        finally:
            process.terminate()


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

"""Requests as guidellm looks at them: the numbers of each, by status, made of the records of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.terminal_text import printable

STATUSES = ("successful", "errored", "incomplete")
SAMPLES = 20  # errored and incomplete requests that are told one by one
MS = 1e6  # ns


@dataclass
class Requests:
    """The numbers of requests of one status, one entry per request unless said otherwise.

    Times are CLOCK_MONOTONIC ns.

    Attributes:
        start, end: Sent, and closed; what could not be sent has begun when its slot was free.
        latency_s: From the one to the other.
        prompt_tokens: As the server counts them; where it does not, as expected.
        output_tokens: As `recorder.output_tokens`.
        events: Token-bearing events.
        ttft_ms: From sent to the first token; of those that brought one.
        first: When that was, likewise.
        first_prompts: Their prompt tokens.
        tpot_ms: From sent to the last token, by output tokens; of those that brought one.
        tpot_tokens: Their output tokens.
        itl_ms: First to last token, by the output tokens after the first; of those that brought two.
        itl_tokens: Their output tokens after the first.
        token_times: When events came; one array for each request that brought any.
        token_counts: How many tokens each brought; likewise.
        gaps_ms: Between neighbouring events; likewise.
        samples: The first SAMPLES of them.
    """

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    ttft_ms: list[float] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    first_prompts: list[int] = field(default_factory=list)
    tpot_ms: list[float] = field(default_factory=list)
    tpot_tokens: list[int] = field(default_factory=list)
    itl_ms: list[float] = field(default_factory=list)
    itl_tokens: list[int] = field(default_factory=list)
    token_times: list[NDArray[np.int64]] = field(default_factory=list)
    token_counts: list[NDArray[np.float64]] = field(default_factory=list)
    gaps_ms: list[NDArray[np.float64]] = field(default_factory=list)
    samples: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a request that was sent, or could not be."""
        start = record.sent or record.ready or record.due
        tokens = record.answer_tokens
        prompt = record.prompt_tokens if record.prompt_tokens >= 0 else max(record.expected_tokens, 0)
        self.start.append(start)
        self.end.append(record.closed)
        self.latency_s.append((record.closed - start) / 1e9)
        self.prompt_tokens.append(prompt)
        self.output_tokens.append(tokens)
        self.events.append(record.events)
        if len(self.samples) < SAMPLES:
            self.samples.append(record)
        if not record.events:
            return
        self.first.append(record.first_token)
        self.first_prompts.append(prompt)
        self.ttft_ms.append((record.first_token - record.sent) / MS)
        self.tpot_ms.append((record.last_token - record.sent) / MS / max(tokens, 1))
        self.tpot_tokens.append(tokens)
        if tokens > 1 and record.events > 1:
            self.itl_ms.append((record.last_token - record.first_token) / MS / (tokens - 1))
            self.itl_tokens.append(tokens - 1)
        times = np.frombuffer(record.marks, dtype=np.int64)
        counts = np.array(record.token_counts or np.ones(len(times)), dtype=np.float64)
        self.token_times.append(times)
        self.token_counts.append(counts * (tokens / counts.sum()))
        self.gaps_ms.append(np.diff(times) / MS)

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})


def by_status(records: Iterable[Record]) -> dict[str, Requests]:
    """The requests of each of STATUSES; those that were called off before they were sent are none of guidellm's."""
    found = {status: Requests() for status in STATUSES}
    for record in records:
        if record.sent or record.outcome is not Outcome.CANCELLED:
            found[status(record)].add(record)
    return found


def status(record: Record) -> str:
    """What guidellm calls the way it ended."""
    if record.outcome is Outcome.OK:
        return "successful"
    return "incomplete" if record.outcome is Outcome.CANCELLED else "errored"


def told(record: Record, wall_ns: int, path: str) -> dict[str, Any]:
    """One request that did not end well, as guidellm tells of it.

    Args:
        record: Of the request.
        wall_ns: What is added to CLOCK_MONOTONIC to make it the time since 1970.
        path: Of the API.
    """

    def stamp(at: int) -> float | None:
        return (at + wall_ns) / 1e9 if at else None

    text = f"{record.outcome}{f' {record.status}' if record.status else ''}: {record.detail or ''}"
    return {
        "type_": "generative_request_stats",
        "request_id": str(record.index),
        "request_type": "chat_completions" if path.endswith("chat/completions") else "text_completions",
        "info": {
            "request_id": str(record.index),
            "status": "cancelled" if record.outcome is Outcome.CANCELLED else "errored",
            "error": printable(text.removesuffix(": ")),
            "timings": {
                "targeted_start": stamp(record.due),
                "request_start": stamp(record.sent),
                "first_token_iteration": stamp(record.first_token),
                "last_token_iteration": stamp(record.last_token),
                "token_iterations": record.events,
                "request_end": stamp(record.closed),
            },
        },
        "input_metrics": {"text_tokens": record.prompt_tokens if record.prompt_tokens >= 0 else None},
        "output_metrics": {"text_tokens": record.answer_tokens if record.events else None},
    }

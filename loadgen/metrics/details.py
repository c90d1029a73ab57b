"""What --save-detailed keeps of each request."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from loadgen.core.outcome import Outcome
from loadgen.core.server_times import VLLM
from loadgen.metrics.failures import failure_class

if TYPE_CHECKING:
    from loadgen.core.record import Record


class Details(Struct, frozen=True):
    """Columns that --save-detailed keeps: one entry per request, in the order of `Snapshot.rows`.

    Attributes:
        input_lens, output_lens: Tokens of the prompt and of the answer.
        ttfts: From sent to the first token, seconds.
        itls: Between token-bearing events, seconds.
        latencies: From sent to the last token, seconds.
        start_times: When it was sent, seconds, CLOCK_MONOTONIC.
        queue_times: From due to sent, seconds.
        generated_texts: The text of the answer; empty if the request is not ok.
        errors: Why the request is not ok; empty if it is.
        server_queue_times, server_ttfts: What vLLM says of its queue and of its prefill, which it
            names so, seconds; None where it does not say.
    """

    input_lens: list[int] = []
    output_lens: list[int] = []
    ttfts: list[float] = []
    itls: list[list[float]] = []
    latencies: list[float] = []
    start_times: list[float] = []
    queue_times: list[float] = []
    generated_texts: list[str] = []
    errors: list[str] = []
    server_queue_times: list[float | None] = []
    server_ttfts: list[float | None] = []

    def __add__(self, other: Details) -> Details:
        return Details(
            *(a + b for a, b in zip(structs.astuple(self), structs.astuple(other), strict=True))
        )

    def add(self, record: Record) -> None:
        """Append the entry of a record that has its outcome."""
        ok = record.outcome is Outcome.OK
        stamps = record.stamps if ok else []
        counted = record.prompt_tokens
        self.input_lens.append(counted if counted >= 0 else record.expected_tokens)
        self.output_lens.append(record.answer_tokens if ok else 0)
        self.ttfts.append((record.first_token - record.sent) / 1e9 if ok else 0.0)
        self.itls.append([(b - a) / 1e9 for a, b in pairwise(stamps)])
        self.latencies.append((record.last_token - record.sent) / 1e9 if ok else 0.0)
        self.start_times.append(record.sent / 1e9)
        self.queue_times.append((record.sent - record.due) / 1e9 if record.sent else 0.0)
        self.generated_texts.append(record.generated_text if ok else "")
        times = record.server_times or {}
        for column, name in ((self.server_queue_times, "queue"), (self.server_ttfts, "prefill")):
            ns = times.get(name) if times.get("by") == VLLM else None
            column.append(None if ns is None else int(ns) / 1e9)
        self.errors.append("" if ok else f"{failure_class(record)}: {record.detail}")

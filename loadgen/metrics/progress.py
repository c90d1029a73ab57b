"""Progress of a run, reported a few times a second; the progress of several workers adds up to
that of the run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Any, Self

from msgspec import Struct, field

from loadgen.core.outcome import Cause, ended_by
from loadgen.core.sketch import Sketch
from loadgen.metrics.failures import Reachability

BEFORE, ON_THE_CLOCK, DONE = ("connecting", "warming up", "ready"), ("running", "draining"), "done"
# Of a run that is carried out, in their order; no worker is ever done.
PHASES = (*BEFORE, *ON_THE_CLOCK, DONE)
LATENCIES = ("ttft", "ttfo", "tpot", "itl", "icl", "e2el", "lag", "loop_stall")
COUNTS = (
    *("scheduled", "in_flight", "sent", "ended", "never_due", "never_sent", "ok", "waiting"),
    *("output_tokens", "counted_tokens", "streamed_tokens", "imputed_gaps", "unauthorized"),
)


class Progress(Struct, frozen=True):
    """How far a run is. While prompts are prepared, `ended` counts the requests that are ready.

    Attributes:
        phase: busy (a study waits for a quiet machine), starting an engine, waiting for a server,
            preparing, or one of PHASES.
        elapsed_s: Since the phase began; once the clock has started, since then.
        scheduled: Requests of the run; 0 where time alone bounds it.
        in_flight: Sent, or waiting for a connection of their own, and not ended.
        ended: Requests that have ended.
        ok: Those that ended well.
        sent: Requests that were handed to a connection; one that was refused was not.
        never_due: Those that were never sent, since a turn before them had failed.
        never_sent: Those that the end of the run kept from being sent.
        output_tokens: Of those that ended well, as the result counts them.
        note: What keeps the machine busy, the engine's last line, or why the server is waited for.
        usual_s: That this engine takes to start.
        waiting: Requests that are due and have not been sent: without a slot under the cap, or
            late.
        cap: Most requests in flight; None for no limit.
        streams: Whether answers are streams of tokens; embeddings and scores come in one piece.
        closed_loop: Whether a request is due when a slot is free for it.
        sending_s: When the last request is due, on the clock; None where that is not known
            beforehand.
        counted_tokens: Of those that ended well, as events show them: one for an event without a
            count.
        streamed_tokens: The same of all requests, those in flight included.
        imputed_gaps: Gaps of `itl` that are equal parts of one between two events; where there are
            none, `itl` says no more than `icl`.
        failures: Requests that did not end well by their class, "status(503)" spelled out, those
            never sent included.
        unauthorized: Answers with status 401, also to requests that are sent again.
        busy_share: Share of the time on the clock for which the loop that measures ran; of several
            the busiest.
        ttft, ttfo, e2el: Of requests that ended well, from due, or from sent where --latency-from
            says so.
        tpot, itl, icl: Of them too: per token of a request, between tokens, and between events that
            bear any.
        lag: How late requests were sent, for no other reason than this client.
        loop_stall: How long tokens had to wait for the loop.
        oldest_s: Age of the oldest request in flight; 0 where none is.
        reached: Where time alone bounds the run, the number of the request after the last that was
            sent.
        contacts: Of each target, whether it still lets anybody connect.
        silent: Streams in which no token has come for 60 s, and when the last one came, seconds on
            the clock, by the number of the request.
        server: The latest server metrics, where they are scraped: running, waiting, kv_usage (0 to
            1). Nothing where the running loop measures, which would have to read it.
    """

    phase: str
    elapsed_s: float = 0.0
    scheduled: int = 0
    in_flight: int = 0
    ended: int = 0
    ok: int = 0
    output_tokens: int = 0
    note: str = ""
    usual_s: float | None = None
    sent: int = 0
    never_due: int = 0
    never_sent: int = 0
    waiting: int = 0
    cap: int | None = None
    streams: bool = True
    closed_loop: bool = False
    sending_s: float | None = None
    counted_tokens: int = 0
    streamed_tokens: int = 0
    imputed_gaps: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    unauthorized: int = 0
    busy_share: float = 0.0
    ttft: Sketch = Sketch()
    ttfo: Sketch = Sketch()
    tpot: Sketch = Sketch()
    itl: Sketch = Sketch()
    icl: Sketch = Sketch()
    e2el: Sketch = Sketch()
    lag: Sketch = Sketch()
    loop_stall: Sketch = Sketch()
    oldest_s: float = 0.0
    reached: int = 0
    contacts: tuple[Reachability, ...] = ()
    silent: Mapping[int, float] = field(default_factory=dict)
    server: Mapping[str, float] = field(default_factory=dict)

    @property
    def measuring(self) -> bool:
        """Whether it is carried out already, so that it can be ended with a result; before, only
        be given up.
        """
        return self.phase in PHASES

    @property
    def begun(self) -> bool:
        """Whether the clock has started, so that requests are counted."""
        return self.phase in (*ON_THE_CLOCK, DONE)

    @property
    def no_answer(self) -> Reachability | None:
        """The target that was lost last, where all of them refuse every connection; None while
        one does not.
        """
        if not self.contacts or not all(contact.gone for contact in self.contacts):
            return None
        return max(self.contacts, key=lambda contact: contact.refused_s or 0.0)

    @property
    def cancelled(self) -> int:
        """Requests that ended as `cancelled`: because the run ended first, or because an earlier
        turn had failed (`never_due`).
        """
        return ended_by(self.failures, Cause.RUN)

    @property
    def disconnected(self) -> int:
        """Requests whose users left, as --disconnect asks: no failures."""
        return ended_by(self.failures, Cause.USER)

    @property
    def not_ok(self) -> int:
        """Requests that failed, without turns that were never due."""
        return ended_by(self.failures, Cause.SERVER, Cause.CLIENT)

    @property
    def failed(self) -> int:
        """Requests that failed, with the turns after them that were never due."""
        return self.not_ok + self.never_due

    @property
    def cut_off(self) -> int:
        """Requests that the end of the run cancelled in flight.

        What has ended is ok, failed or cut off.
        """
        return self.cancelled - self.never_due - self.never_sent

    @property
    def due(self) -> int:
        """Requests that have become due."""
        return self.ended - self.never_due + self.in_flight + self.waiting

    @property
    def tokens_per_counted(self) -> float:
        """How many tokens of the result one that is counted in a stream stands for, as far as
        that is known.
        """
        return self.output_tokens / self.counted_tokens if self.counted_tokens else 1.0

    @classmethod
    def together(cls, each: Sequence[Self]) -> Self:
        """Combine the progress of several workers; the phase is that of the last of them."""
        combined: dict[str, Any] = {
            name: reduce(add, (getattr(worker, name) for worker in each))
            for name in (*COUNTS, *LATENCIES)
        }
        for name in ("elapsed_s", "busy_share", "oldest_s", "reached"):
            combined[name] = max(getattr(worker, name) for worker in each)
        # None before the clock starts.
        contacts = [worker.contacts for worker in each if worker.contacts]
        return cls(
            min((worker.phase for worker in each), key=PHASES.index),
            cap=_of_all(sum, [worker.cap for worker in each]),
            streams=all(worker.streams for worker in each),
            closed_loop=any(worker.closed_loop for worker in each),
            sending_s=_of_all(max, [worker.sending_s for worker in each]),
            failures=reduce(add, (Counter(worker.failures) for worker in each)),
            contacts=tuple(reduce(add, same) for same in zip(*contacts, strict=True)),
            silent=reduce(or_, (dict(worker.silent) for worker in each)),
            **combined,
        )


def _of_all(combine: Callable[[Iterable[Any]], Any], values: Sequence[float | None]) -> Any:
    """Combine values; None where one of them is None."""
    return None if None in values else combine(values)


OnProgress = Callable[[Progress], None]  # called a few times a second

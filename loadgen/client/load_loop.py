"""The load on the clock: sends each request when it is due, and waits until all have ended."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

from loadgen.client.loop_probe import LoopProbe
from loadgen.client.pacer import Pacer
from loadgen.client.retries import Retries
from loadgen.client.sessions import OpenSessions, Population, SessionTokens
from loadgen.config.settings import RunSettings, is_bounded_by_time, is_closed_loop
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.core.schedule import Schedule
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.streamed_tokens import Sample
from loadgen.util.clock import KERNEL, NS_PER_S, Clock
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload import structured_output
from loadgen.workload.draws import Departures
from loadgen.workload.due_times import Stripe
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests


class Sender(Protocol):
    """Brings requests to a server: a `Transport`, or a network in memory.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        hook: Compares each read with the next due time.
    """

    on_end: Callable[[Record], None]

    @property
    def hook(self) -> SendHook: ...  # noqa: D102

    def send(self, record: Record, body: bytes) -> None:
        """Send one request now, or as soon as there is a connection."""


class Load:
    """One schedule, sent over one transport into one recorder.

    Args:
        settings: For the cap, the duration and what closes the loop.
        transport: Sends requests; its `on_end` is taken.
        requests: The requests of the run.
        recorder: Counts them; its start is that of the clock.
        stripe: Which of them are sent here, and when they are due.
        clock: The clock of the due times, and of the transport.
        on_record: Called with every record as it ends, e.g. to write it out.
        count_tokens: Counts the tokens of texts, for answers that the server does not count, and
            for a sample of those whose events show fewer tokens than it counts. It is slow, and
            returns None where it cannot count.
        partition: Which of those that share the run it is: its share of the cap and of the sample.

    Attributes:
        ended: Requests that have ended.
        tokenized: Tokens by `count_tokens` of answers that the server did not count, by request
            number.
        sampled: The same of answers that the server did count.
        structured: Answers that were to be JSON, by what they are
            (`structured_output.Conformance`).
        ends_by_time: Whether it may send fewer than are scheduled: a closed loop of a duration.
        closed_loop: Whether a request is due when a slot is free for it.
        sending_s: When the last request is due, on the clock; None where that depends on the
            answers.
        reached: Where time alone bounds it, the number after that of the last request sent; else 0.
        draining: Whether all has been sent, and only answers are waited for.
    """

    def __init__(
        self,
        settings: RunSettings,
        transport: Sender,
        requests: Requests,
        recorder: Recorder,
        stripe: Stripe,
        clock: Clock = KERNEL,
        *,
        on_record: Callable[[Record], None] | None = None,
        count_tokens: Callable[[list[str]], list[int] | None] | None = None,
        partition: Partition = WHOLE,
    ) -> None:
        self._transport = transport
        self._requests = requests
        self._recorder = recorder
        self._clock = clock
        self._index = index = stripe.numbers
        transport.on_end = self._ended
        # A trace has due times, whatever the rate.
        self.closed_loop = closed_loop = is_closed_loop(settings) and stripe.all_at_once
        beginnings = stripe.beginnings()
        has_sessions = len(beginnings.numbers) < len(index)
        self._population = Population.from_settings(settings, partition, beginnings.numbers)
        if self._population is not None:
            beginnings = self._population.beginnings()
        following = len(index) - len(beginnings.numbers)
        self.ends_by_time = closed_loop and settings.duration is not None
        self._by_time_alone = closed_loop and is_bounded_by_time(settings)
        self.reached = 0
        until_ns = recorder.start_ns + int((settings.duration or 0) * NS_PER_S)
        cap = settings.max_concurrency
        if cap is not None:
            cap = None if settings.users is not None else partition.share(cap)
        schedule = Schedule(
            recorder.start_ns,
            beginnings.numbers,
            beginnings.due,
            following=following,
            cap=cap,
            caps=_caps(settings, recorder.start_ns, partition),
            closed_loop=closed_loop and self._population is None,
            until_ns=until_ns if self.ends_by_time else None,
        )
        self.pacer = Pacer(schedule, self._send, transport.hook, clock)
        last_s = settings.duration if closed_loop else max(stripe.due, default=0) / NS_PER_S
        self.sending_s = None if following else last_s
        self._streamed_before = transport.hook.tokens
        self._sent_before = transport.hook.sends
        self._sessions = OpenSessions(requests, index[-1] + 1) if has_sessions else None
        token = settings.session_token if has_sessions else None
        self._session_tokens = SessionTokens(token) if token else None
        self._body = self._sessions.body if self._sessions else requests.body
        repeats_answers = self._sessions is not None and requests.repeats_answers
        self._keeps_answer = settings.save_detailed or repeats_answers or requests.structured
        self._answers: list[tuple[int, str]] = []  # to be judged, by the number of the request
        self._departures = Departures.from_settings(settings)
        self._retries = Retries.from_settings(settings, self._send_again, clock)
        self._on_record = on_record
        self._count_tokens = count_tokens
        self._keeps_text = count_tokens is not None  # until the server has shown that it counts
        self._uncounted: list[Record] = []
        self._sample = Sample(partition.count)
        self.tokenized: dict[int, int] = {}
        self.sampled: dict[int, int] = {}
        self.structured = Counter[str]()
        self._open: dict[
            int, int
        ] = {}  # when each request in flight was handed to the transport, the oldest first
        self.ended = 0
        self._drained = asyncio.Event()
        self._failure: Exception | None = None
        self.draining = False

    @property
    def sent(self) -> int:
        """Requests that were handed to a connection."""
        return self._transport.hook.sends - self._sent_before

    @property
    def in_flight(self) -> int:
        """Requests sent, or waiting for a connection of their own, that have not ended."""
        return len(self._open)

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest request in flight was handed to the transport; None where none is in
        flight.
        """
        return next(iter(self._open.values()), None)

    @property
    def streamed_tokens(self) -> int:
        """Tokens that have come, as events show them."""
        return self._transport.hook.tokens - self._streamed_before

    async def run(self) -> None:
        """Send everything when it is due, then wait for the last one to end.

        Raises:
            Exception: An error of ours on the clock.
        """
        try:
            with LoopProbe(self._clock, self._transport.hook, self._recorder.waits["loop_stall"]):
                self.pacer.start()
                await self.pacer.all_sent.wait()
                self._recorder.scheduled -= self.pacer.schedule.cut_off
                self.draining = True
                if self.in_flight:
                    await self._drained.wait()
        finally:
            self.pacer.stop()  # where the caller has cancelled us
            if self._retries is not None:
                self._retries.close()
        if self._failure is not None:
            raise self._failure

    async def count(self) -> None:
        """Count the tokens of answers that the server did not count, and record these; call once
        all have ended.

        Where the server counts more than events showed, the sample is tokenized, too.
        """
        self.tokenized = await self._tokens_of(self._uncounted)
        if self._sample.is_in_doubt:
            self.sampled = await self._tokens_of(self._sample.records)
            for record in self._sample.records:
                if record.index in self.sampled:
                    self._recorder.add_sample(record, self.sampled[record.index])
        self._sample.records.clear()
        for record in self._uncounted:
            record.tokenized = self.tokenized.get(record.index, -1)
            self._recorder.add(record)
        self._uncounted.clear()
        if self._answers:
            self.structured = await asyncio.to_thread(self._count_structured)

    def _count_structured(self) -> Counter[str]:
        bodies = (
            (self._requests.body(index).replace(ANSWER_PLACEHOLDER, b""), text)
            for index, text in self._answers
        )
        verdicts = (structured_output.conformance(body, text) for body, text in bodies)
        return Counter(str(verdict) for verdict in verdicts if verdict is not None)

    async def _tokens_of(self, records: list[Record]) -> dict[int, int]:
        """Return the tokens of records' texts by request number; {} where they cannot be
        counted.
        """
        if not records or self._count_tokens is None:
            return {}
        counts = await asyncio.to_thread(self._count_tokens, [record.text for record in records])
        return (
            {}
            if counts is None
            else dict(zip([record.index for record in records], counts, strict=True))
        )

    def stop(self, reason: str) -> None:
        """Send nothing more; requests that were not sent are cancelled."""
        count = self.pacer.stop()
        first = self._index[len(self._index) - count] if count else 0
        self._recorder.add_never_sent(first, count, Outcome.CANCELLED, reason)
        if self._retries is not None:
            for refused in self._retries.close():
                refused.outcome = Outcome.CANCELLED
                refused.detail = (
                    f"{reason}, while it waited to be sent again after status {refused.status}"
                )
                self._ended(refused)

    def _send(self, index: int, due_ns: int, ready_ns: int) -> None:
        try:
            record = self._requests.record(index, due_ns)
            record.ready = ready_ns
            is_sampled = self._count_tokens is not None and self._sample.take(index)
            record.keeps_text = self._keeps_text or is_sampled
            if self._keeps_answer:
                record.keeps_answer = True
            if self._sessions is not None:
                record.turn = self._requests.turn(index)
                if self._session_tokens is not None:
                    self._session_tokens.prepare(record)
                    if record.turn > 0 and record.session_token is None:
                        self._recorder.counters["turns_without_token"] += 1
            if self._departures is not None:
                self._departures.mark(record)
            self._open[index] = ready_ns
            if self._by_time_alone:
                self.reached = index + 1
                if index >= self._requests.prepared:
                    self._recorder.counters["repeated_prompts"] += self._requests.repeats(index)
            self._transport.send(record, self._body(index))
        except Exception as error:  # noqa: BLE001 - run() raises it
            self._fail(error)

    def _send_again(self, record: Record) -> None:
        try:
            self._transport.send(record, self._body(record.index))
        except Exception as error:  # noqa: BLE001 - run() raises it
            self._fail(error)

    def _ended(self, record: Record) -> None:
        try:
            if self._retries is not None and self._retries.take(record):
                return  # it is in flight for its user
            self.ended += 1
            del self._open[record.index]
            if record.outcome is Outcome.OK and record.keeps_text and not record.counts_tokens:
                self._uncounted.append(record)
            else:
                self._keeps_text = self._keeps_text and not record.counts_tokens
                self._recorder.add(record)
                if record.keeps_text and record.outcome is Outcome.OK:
                    self._sample.add(record)
            if self._requests.structured and record.outcome is Outcome.OK:
                self._answers.append((record.index, record.answer_text))
            if self._on_record is not None:
                self._on_record(record)
            if self._session_tokens is not None:
                self._session_tokens.take(record)
            if not self.pacer.schedule.is_done:  # else what would follow was counted as cancelled
                continues = self._sessions is not None and self._continue_session(
                    self._sessions, record
                )
                if self._population is not None and not continues:
                    session = self._population.next_session(record.closed)  # of the same user
                    if session is not None:
                        self.pacer.follow(*session)
            self.pacer.release()
            if not self._open and self.pacer.schedule.is_done:
                self._drained.set()
        except Exception as error:  # noqa: BLE001 - run() raises it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the run with an error of ours: in the event loop it would be logged, and the run
        would never end.
        """
        if self._failure is None:
            self._failure = error
            self.pacer.stop()
            self._drained.set()

    def _continue_session(self, sessions: OpenSessions, record: Record) -> bool:
        """Have the requests follow that are due after this one, or none where it has failed.

        Returns:
            Whether the session goes on.
        """
        is_ok = record.outcome is Outcome.OK
        for index, due_ns in sessions.next_due(record) if is_ok else ():
            self.pacer.follow(index, due_ns)
        given_up = [] if is_ok else sessions.given_up(record)
        is_over = sessions.is_over(record)
        if self._session_tokens is not None and is_over:
            self._session_tokens.end(record)
        for never_due in given_up:
            self._recorder.add(never_due)
            if self._on_record is not None:
                self._on_record(never_due)
        self.ended += len(given_up)
        self.pacer.cancel_followups(len(given_up))
        return not is_over


def _caps(settings: RunSettings, start_ns: int, partition: Partition) -> Iterator[tuple[int, int]]:
    """Yield when the share of a partition in --concurrency-profile changes, ns, and to what;
    nothing without it.
    """
    profile = settings.load_profile
    if settings.concurrency_profile is not None and profile is not None:
        for at_s, level in profile.levels():
            yield start_ns + int(at_s * NS_PER_S), partition.share(level)

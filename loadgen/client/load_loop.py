"""The load on the clock: sends each request when it is due, and waits until all have ended."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from loadgen.client.loop_probe import LoopProbe
from loadgen.client.retries import Retries
from loadgen.client.sessions import Population, Sessions
from loadgen.config.settings import RunSettings, is_bounded_by_time, is_closed_loop
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.schedule import Schedule
from loadgen.core.sender import Sender
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.streamed_tokens import Sample
from loadgen.util.clock import KERNEL, NS_PER_S, Clock
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload import structured_output
from loadgen.workload.draws import EarlyEndDraws
from loadgen.workload.due_times import Stripe
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests

if TYPE_CHECKING:
    from loadgen.core.sender import Link


class Load:
    """One schedule, sent over one link into one recorder.

    Args:
        settings: For the cap, the duration and what closes the loop.
        link: Brings requests to a server; its `on_end` is taken.
        requests: The requests of the run.
        recorder: Counts them; its start is that of the clock.
        stripe: Which of them are sent here, and when they are due.
        clock: The clock of the due times, and of the link.
        on_record: Called with every record as it ends, e.g. to write it out.
        count_tokens: Counts the tokens of texts, for answers that the server does not count, and
            for a sample of those whose events show fewer tokens than it counts. It is slow, and
            returns None where it cannot count.
        partition: Which of those that share the run it is: its share of the cap and of the sample.

    Attributes:
        pacer: Hands out the requests.
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
        link: "Link",
        requests: Requests,
        recorder: Recorder,
        stripe: Stripe,
        clock: Clock = KERNEL,
        *,
        on_record: Callable[[Record], None] | None = None,
        count_tokens: Callable[[list[str]], list[int] | None] | None = None,
        partition: Partition = WHOLE,
    ) -> None:
        self._link = link
        self._requests = requests
        self._recorder = recorder
        self._clock = clock
        self._index = index = stripe.numbers
        # A trace has due times, whatever the rate.
        self.closed_loop = closed_loop = is_closed_loop(settings) and stripe.all_at_once
        beginnings = stripe.beginnings()
        has_sessions = len(beginnings.numbers) < len(index)
        population = Population.from_settings(settings, partition, beginnings.numbers)
        if population is not None:
            beginnings = population.beginnings()
        following = len(index) - len(beginnings.numbers)
        self.ends_by_time = closed_loop and settings.duration is not None
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
            closed_loop=closed_loop and population is None,
            until_ns=until_ns if self.ends_by_time else None,
        )
        last_s = settings.duration if closed_loop else max(stripe.due, default=0) / NS_PER_S
        self.sending_s = None if following else last_s
        self._streamed_before = link.hook.tokens
        self._sent_before = link.hook.sends
        self._sender = sender = Sender(schedule, requests.table, link, recorder.add, clock)
        self.pacer = sender.pacer
        self._count_tokens = count_tokens
        self._uncounted: list[Record] = []
        self._sample = Sample(partition.count)
        self.tokenized: dict[int, int] = {}
        self.sampled: dict[int, int] = {}
        if count_tokens is not None:
            sender.keeps_text = True  # until the server has shown that it counts
            sender.samples = self._sample.take
            sender.on_text = self._add_text
        self._answers: list[tuple[int, str]] = []  # to be judged, by the number of the request
        self.structured = Counter[str]()
        if requests.structured:
            sender.after_end.append(self._keep_structured)
        repeats_answers = has_sessions and requests.repeats_answers
        sender.keeps_answer = settings.save_detailed or repeats_answers or requests.structured
        sender.before_send.extend(draws.mark for draws in EarlyEndDraws.each(settings))
        self._retries = Retries.from_settings(settings, sender.send_again, clock)
        if self._retries is not None:
            sender.resends = self._retries.take
        if on_record is not None:
            sender.after_end.append(on_record)
        sessions = None
        if has_sessions:
            end = index[-1] + 1
            token = settings.session_token
            sessions = Sessions(sender, requests, recorder, end, token, on_record)
            sessions.register()
        if population is not None:
            population.register(sender, sessions.is_over if sessions else lambda record: True)
        self.reached = 0
        if closed_loop and is_bounded_by_time(settings):
            sender.before_send.append(self._reach)
        self.draining = False

    @property
    def ended(self) -> int:
        """Requests that have ended."""
        return self._sender.ended

    @property
    def sent(self) -> int:
        """Requests that were handed to a connection."""
        return self._link.hook.sends - self._sent_before

    @property
    def in_flight(self) -> int:
        """Requests sent, or waiting for a connection of their own, that have not ended."""
        return len(self._sender.in_flight)

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest request in flight was ready to be sent; None: none is in flight."""
        return next(iter(self._sender.in_flight.values()), None)

    @property
    def streamed_tokens(self) -> int:
        """Tokens that have come, as events show them."""
        return self._link.hook.tokens - self._streamed_before

    async def run(self) -> None:
        """Send everything when it is due, then wait for the last one to end.

        Raises:
            Exception: An error of ours on the clock.
        """
        try:
            with LoopProbe(self._clock, self._link.hook, self._recorder.waits["loop_stall"]):
                self.pacer.start()
                await self.pacer.all_sent.wait()
                self._recorder.scheduled -= self.pacer.schedule.cut_off
                self.draining = True
                if self.in_flight:
                    await self._sender.drained.wait()
        finally:
            self.pacer.stop()  # where the caller has cancelled us
            if self._retries is not None:
                self._retries.close()
        if self._sender.failure is not None:
            raise self._sender.failure

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
                self._sender.end(refused)

    def _reach(self, record: Record) -> None:
        """Note how far a load has come that time alone bounds."""
        self.reached = record.index + 1
        if record.index >= self._requests.prepared:
            self._recorder.counters["repeated_prompts"] += self._requests.repeats(record.index)

    def _add_text(self, record: Record) -> None:
        """Count a record whose text was kept; later where a tokenizer has to count its tokens."""
        is_ok = record.outcome is Outcome.OK
        if is_ok and not record.counts_tokens:
            self._uncounted.append(record)
            return
        self._sender.keeps_text = self._sender.keeps_text and not record.counts_tokens
        self._recorder.add(record)
        if is_ok:
            self._sample.add(record)

    def _keep_structured(self, record: Record) -> None:
        """Keep an answer that is to be judged as JSON."""
        if record.outcome is Outcome.OK:
            self._answers.append((record.index, record.answer_text))


def _caps(settings: RunSettings, start_ns: int, partition: Partition) -> Iterator[tuple[int, int]]:
    """Yield when the share of a partition in --concurrency-profile changes, ns, and to what;
    nothing without it.
    """
    profile = settings.load_profile
    if settings.concurrency_profile is not None and profile is not None:
        for at_s, level in profile.levels():
            yield start_ns + int(at_s * NS_PER_S), partition.share(level)

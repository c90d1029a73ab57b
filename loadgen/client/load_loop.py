"""The load on the clock: sends each request when it is due, and waits until all have ended."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from loadgen.client.retries import UNAUTHORIZED, Retries
from loadgen.client.sessions import Population, Sessions
from loadgen.config.settings import RunSettings, is_bounded_by_time, is_closed_loop
from loadgen.core.loop_probe import LoopProbe
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.schedule import Schedule
from loadgen.core.sender import Sender
from loadgen.metrics.failures import status_class
from loadgen.metrics.recorder import Recorder
from loadgen.util.clock import KERNEL, NS_PER_S, Clock
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.draws import EarlyEndDraws
from loadgen.workload.due_times import Stripe
from loadgen.workload.request_store import Requests

if TYPE_CHECKING:
    from loadgen.core.sender import Link


class Feature(Protocol):
    """What a run does besides: it sets hooks of the sender, and finds facts."""

    def register(self, sender: Sender) -> None:
        """Set the hooks, before the first request is sent."""

    async def finish(self) -> dict[str, Any]:
        """Return the facts by their names, once all requests have ended."""


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
        features: What the run does besides.
        partition: Which of those that share the run it is: its share of the cap.

    Attributes:
        pacer: Hands out the requests.
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
        features: Sequence[Feature] = (),
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
        schedule = _schedule(
            settings, partition, recorder.start_ns, beginnings, following, closed_loop
        )
        last_s = settings.duration if closed_loop else max(stripe.due, default=0) / NS_PER_S
        self.sending_s = None if following else last_s
        self._sender = sender = Sender(schedule, requests.table, link, recorder.add, clock)
        self.pacer = sender.pacer
        sender.keeps_answer = settings.save_detailed
        for feature in features:
            feature.register(sender)
        sender.before_send.extend(draws.mark for draws in EarlyEndDraws.each(settings))
        self._retries = Retries.from_settings(settings, sender.send_again, clock)
        if self._retries is not None:
            sender.resends = self._retries.take
        if on_record is not None:
            sender.after_end.append(on_record)
        sessions = None
        if has_sessions:
            token = settings.session_token
            sessions = Sessions(sender, requests, recorder, index[-1] + 1, token, on_record)
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
        return self._link.hook.sends

    @property
    def in_flight(self) -> int:
        """Requests sent, or waiting for a connection of their own, that have not ended."""
        return len(self._sender.in_flight)

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest request in flight was ready to be sent; None: none is in flight."""
        return next(iter(self._sender.in_flight.values()), None)

    @property
    def unauthorized(self) -> int:
        """Answers with status 401, also to requests that are sent again."""
        retried = self._retries.unauthorized if self._retries is not None else 0
        return retried + self._recorder.failed_by_class[status_class(UNAUTHORIZED)]

    @property
    def streamed_tokens(self) -> int:
        """Tokens that have come, as events show them."""
        return self._link.hook.tokens

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


def _schedule(
    settings: RunSettings,
    partition: Partition,
    start_ns: int,
    beginnings: Stripe,
    following: int,
    closed_loop: bool,
) -> Schedule:
    """Return the schedule of the requests that one of those that share a run sends.

    Args:
        settings: For the cap, its changes and the duration.
        partition: Which of those it is: its share of the cap.
        start_ns: When the clock starts.
        beginnings: The requests that follow none.
        following: How many follow others.
        closed_loop: Whether slots alone, or users, decide when requests are due.
    """
    has_users = settings.users is not None
    cap = settings.max_concurrency
    if cap is not None:
        cap = None if has_users else partition.share(cap)
    profile = settings.load_profile if settings.concurrency_profile is not None else None
    caps = (
        (start_ns + int(at_s * NS_PER_S), partition.share(level))
        for at_s, level in (() if profile is None else profile.levels())
    )
    until_ns = None
    if closed_loop and settings.duration is not None:
        until_ns = start_ns + int(settings.duration * NS_PER_S)
    return Schedule(
        start_ns,
        beginnings.numbers,
        beginnings.due,
        following=following,
        cap=cap,
        caps=caps,
        closed_loop=closed_loop and not has_users,
        until_ns=until_ns,
    )

"""Virtual time: an event loop in which time passes only when nothing is left to do, and then
instantly.

    def test_an_hour_passes():
        async def main():
            before_ns = virtual.now_ns()
            await asyncio.sleep(3600)
            return virtual.now_ns() - before_ns

        assert virtual.run(main()) == 3600 * 10**9

All that asyncio builds on callbacks and timers works: tasks, sleeps, timeouts, events, queues.
Sockets, threads, processes and signals raise NotImplementedError, since their duration is unknown.
Time is kept in whole nanoseconds, and callbacks that are due at the same time run in the order in
which they were scheduled, so that a test gives the same numbers on any machine. Computing takes no
time, unless a test calls `spend`.
"""

import asyncio
import contextvars
import functools
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from loadgen.errors import LoadgenError
from loadgen.util.clock import NS_PER_S, Clock

# The start of time; not 0, since a timestamp of 0 means that something did not happen.
EPOCH_NS = 1_000 * NS_PER_S
T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


class Stuck(LoadgenError):
    """A coroutine waits for something that will never happen."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in virtual time from `EPOCH_NS` on, and return its result.

    Tasks that are left at the end are cancelled, as by `asyncio.run`.

    Raises:
        Stuck: `main` waits, no callback is left to run, and no timer is set.
        Exception: An exception of `main`, or of a callback, which asyncio's own loops would only
            log.
    """
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)


def timed(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Turn a coroutine function into an ordinary function; each call runs in its own virtual
    time.
    """

    @functools.wraps(test)
    def timed_test(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return timed_test


def clock() -> Clock:
    """Return the clock of the running virtual loop.

    Raises:
        RuntimeError: The running loop is not a virtual one, or there is none.
    """
    return Clock(_running().now_ns, Alarm)


def now_ns() -> int:
    """Return the virtual time, ns.

    Raises:
        RuntimeError: As `clock`.
    """
    return _running().now_ns()


def spend(ns: int) -> None:
    """Let time pass while nothing else runs, as computing or a stall of the loop does.

    Raises:
        ValueError: `ns` is negative.
        RuntimeError: As `clock`.
    """
    _running().spend(ns)


class Alarm:
    """`loadgen.util.clock.Alarm` in virtual time: calls back exactly when it is due, unless `spend`
    delays it.

    Attributes:
        at_ns: When it is due, ns; None: it is not set.
        closed: Whether it is closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        assert isinstance(loop, Loop), "a virtual alarm needs a virtual loop"
        self._loop = loop
        self._callback = callback
        self._timer: asyncio.TimerHandle | None = None
        self.at_ns: int | None = None
        self.closed = False

    def set(self, due_ns: int) -> None:
        """Call back once at `due_ns`, in place of any time set before; if that is past, at the
        loop's next turn.
        """
        assert not self.closed, "a closed alarm cannot be set"
        self._cancel()
        self._timer = self._loop.call_at_ns(due_ns, self._ring)
        self.at_ns = due_ns

    def close(self) -> None:
        """Never call back again; may be called twice."""
        self._cancel()
        self.closed = True

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self.at_ns = None

    def _ring(self) -> None:
        self._timer = self.at_ns = None
        self._callback()


class Loop(asyncio.AbstractEventLoop):
    """The event loop of `run`; to use your own runner:
    `asyncio.Runner(loop_factory=virtual.Loop)`.
    """

    def __init__(self) -> None:
        self._now_ns = EPOCH_NS
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[
            tuple[int, int, asyncio.TimerHandle]
        ] = []  # a heap: time in ns, order of scheduling, timer
        self._order = itertools.count()
        self._failure: BaseException | None = None
        self._running = self._stopping = self._closed = False

    # -- time
    # --------------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Return the virtual time, ns."""
        return self._now_ns

    def time(self) -> float:
        """Return the virtual time, s."""
        return self._now_ns / NS_PER_S

    def spend(self, ns: int) -> None:
        """Let time pass while nothing else runs.

        Raises:
            ValueError: `ns` is negative.
        """
        if ns < 0:
            raise ValueError(f"time cannot pass by {ns} ns")
        self._now_ns += ns

    def call_at_ns(
        self,
        at_ns: int,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at `at_ns`, or at the next turn if that is past; `call_at` in whole
        nanoseconds.
        """
        timer = asyncio.TimerHandle(at_ns / NS_PER_S, callback, args, self, context)
        heapq.heappush(self._timers, (at_ns, next(self._order), timer))
        return timer

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Implement `asyncio.loop.call_at`; `when` is rounded to nanoseconds."""
        return self.call_at_ns(round(when * NS_PER_S), callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Implement `asyncio.loop.call_later`; `delay` is rounded to nanoseconds."""
        return self.call_at_ns(
            self._now_ns + round(delay * NS_PER_S), callback, *args, context=context
        )

    # -- turns
    # -------------------------------------------------------------------------------------------

    def run_forever(self) -> None:
        """Implement `asyncio.loop.run_forever`; raises what callbacks raise, and `Stuck`."""
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not self._stopping:
                self._turn()
        finally:
            self._running = self._stopping = False
            asyncio._set_running_loop(None)

    def run_until_complete(self, future: Any) -> Any:
        """Implement `asyncio.loop.run_until_complete`; raises what callbacks raise, and `Stuck`."""
        future = asyncio.ensure_future(future, loop=self)
        future.add_done_callback(self._completed)
        try:
            self.run_forever()
        finally:
            future.remove_done_callback(self._completed)
        return future.result()

    def _completed(self, future: "asyncio.Future[Any]") -> None:
        self.stop()

    def _turn(self) -> None:
        if not self._ready and not self._timers:
            stacks = (task.get_stack(limit=1) for task in asyncio.all_tasks(self))
            frames = itertools.chain.from_iterable(stacks)
            places = sorted(
                f"{f.f_code.co_qualname} ({f.f_code.co_filename}:{f.f_lineno})" for f in frames
            )
            raise Stuck(
                f"no timer is set and nothing is left to do, but these wait: {', '.join(places)}"
            )
        if not self._ready:
            self._now_ns = max(self._now_ns, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_ns:
            self._ready.append(heapq.heappop(self._timers)[2])
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()
            if self._failure is not None:
                failure = self._failure
                self._failure = None
                raise failure

    # -- what asyncio requires of a loop
    # ---------------------------------------------------------------------

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Implement `asyncio.loop.call_soon`."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = (
        call_soon  # for a SIGINT, which `asyncio.Runner` turns into a cancellation
    )

    def create_future(self) -> "asyncio.Future[Any]":
        """Implement `asyncio.loop.create_future`."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> "asyncio.Task[Any]":
        """Implement `asyncio.loop.create_task`."""
        return asyncio.Task(coro, loop=self, **options)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the first exception; the turn raises it."""
        if self._failure is None:
            self._failure = context.get("exception") or RuntimeError(context["message"])

    def stop(self) -> None:
        """Implement `asyncio.loop.stop`."""
        self._stopping = True

    def close(self) -> None:
        """Implement `asyncio.loop.close`."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def is_running(self) -> bool:
        """Implement `asyncio.loop.is_running`."""
        return self._running

    def is_closed(self) -> bool:
        """Implement `asyncio.loop.is_closed`."""
        return self._closed

    def get_debug(self) -> bool:
        """Return False: asyncio's debug mode reads the real clock."""
        return False

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: Python itself closes generators that are left."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own signature
        """Do nothing: there are no threads."""

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when it is due."""


def _running() -> Loop:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, Loop):
        raise RuntimeError(
            "virtual time exists only inside `virtual.run`; the running loop is a "
            f"{type(loop).__name__}"
        )
    return loop

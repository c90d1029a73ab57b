"""A pacer in virtual time, between a schedule and a server of which every send is known."""

import asyncio

from msgspec.structs import replace

from loadgen.core.pacer import Pacer
from loadgen.core.read_loop import SendHook
from loadgen.core.schedule import Schedule
from loadgen.testing import virtual
from tests.helpers.run_facts import MS, S


class World:
    """A server that takes `serves` ns, and a client whose sends cost time and whose alarms ring
    late, both in ns.
    """

    def __init__(self, serves=None, late=lambda: 0, costs=0):
        self.start, self.sends, self.alarms = virtual.now_ns(), [], []
        self._serves, self._late, self._costs = serves, late, costs
        self.in_flight = self.most_in_flight = 0
        self.hook = SendHook()

    def alarm(self, loop, callback):
        def ring():
            virtual.spend(self._late())
            callback()

        self.alarms.append(virtual.Alarm(loop, ring))
        return self.alarms[-1]

    def send(self, schedule):
        index, start_ns = schedule.index, self.start
        due_ns, ready_ns = schedule.due_ns - start_ns, schedule.ready_ns - start_ns
        virtual.spend(self._costs)
        self.sends.append((index, due_ns, ready_ns, virtual.now_ns() - start_ns))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if self._serves is not None:
            asyncio.get_running_loop().call_later(self._serves / S, self.end_one)

    def end_one(self):
        self.in_flight -= 1
        self.pacer.release()

    def pace(self, due_ms, index=None, until_ms=None, **options):
        """A pacer of requests due so long after the start; it is started."""
        due_ns = [round(ms * MS) for ms in due_ms]
        numbers = range(len(due_ns)) if index is None else index
        until_ns = None if until_ms is None else self.start + until_ms * MS
        clock = replace(virtual.clock(), alarm=self.alarm)
        schedule = Schedule(self.start, numbers, due_ns, until_ns=until_ns, **options)
        self.pacer = Pacer(schedule, self.send, self.hook, clock)
        self.pacer.start()
        return self.pacer

    async def run(self, until_ms=100_000):
        """Let time pass up to a moment: by default one after which nothing more happens."""
        await asyncio.sleep((self.start + round(until_ms * MS) - virtual.now_ns()) / S)

    @property
    def sent_ms(self):
        return [at / MS for *_, at in self.sends]

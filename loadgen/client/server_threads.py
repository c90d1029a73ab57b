"""Whether connections that are kept hold threads of a server that requests wait for.

A server that gives each connection a thread answers nobody else on it while the connection is open.
A request on a new connection without a byte of a response, for PATIENCE times as long as any other
has taken, may wait for such a thread: if a request that was sent later on a kept connection has
been answered, or if connections are idle and all requests in flight wait like this one. Else the
server is slow. Then no connection is kept until this one is answered. If its response begins soon
after the first of them was closed, this is a proof; after PROOF of them none is kept any more.
"""

from collections import deque

from loadgen.core.record import Record

PATIENCE = 3
LEAST_PATIENCE_NS = 50_000_000
FIRST_PATIENCE_NS = 5_000_000_000  # before any request was answered
PROOF = 2  # so many more responses begin after idle connections were closed than do not


class ServerThreads:
    """What requests on new connections have shown of a server's threads.

    Args:
        most_patience_ns: For how long a request may wait for its first byte before idle connections
            are closed, at most; 0: no limit.

    Attributes:
        starved: Requests that waited for a thread that a kept connection held.
        are_held: Whether kept connections hold threads that requests wait for.
        keeps_none: Whether no connection is to be kept now.
        answers_several: Whether the server has answered two connections at once.
    """

    def __init__(self, most_patience_ns: int = 0) -> None:
        self.starved = 0
        self.are_held = False
        self.keeps_none = False
        self.answers_several = False
        self._most_patience_ns = most_patience_ns or 1 << 62
        # From a request to the first byte, on kept connections; before there is one, on any.
        self._longest_ns = 0
        self._latest_ns = 0  # when the last of those that were answered on kept ones was sent
        self._unanswered: deque[Record] = deque()  # sent on new connections
        self._answered: Record | None = None  # the last of those that have been answered since
        self._freed: Record | None = None  # that for which none is kept
        self._freed_ns = 0  # when the first was closed for it
        self._weight = 0  # of the proof that it may become
        self._proof = 0

    def sent(self, record: Record) -> None:
        """Watch a request that was sent on a connection that has carried no other."""
        self._unanswered.append(record)

    def ended(self, record: Record, at_ns: int) -> None:
        """Learn from a request that has ended at `at_ns`, before its connection is kept or not."""
        if self._freed is not None:
            self._freed_ns = self._freed_ns or at_ns
            self._see_freed(at_ns)
        if record.reused and record.first_byte:
            if not self._latest_ns:
                self._longest_ns = 0
            self._latest_ns = max(self._latest_ns, record.sent)
        if record.reused or not self._latest_ns:
            since_ns = max(record.sent, self._freed_ns)  # without a wait for a thread
            self._longest_ns = max(self._longest_ns, record.first_byte - since_ns)

    def look(self, idle_ns: int | None, in_use: int, at_ns: int) -> tuple[bool, int]:
        """Look whether a request seems to wait for a thread that an idle connection holds.

        Args:
            idle_ns: Since when the oldest idle connection has been idle; None: there is none.
            in_use: How many connections carry requests.
            at_ns: Now.

        Returns:
            Whether to close the idle connections, and after how long to look again, ns; 0: not
            before the next request on a new connection.
        """
        self._see_freed(at_ns)
        self._drop_answered()
        if self.are_held:
            return True, 0
        if self._freed is not None:
            return True, LEAST_PATIENCE_NS
        if not self._unanswered:
            return False, 0
        patience_ns = max(PATIENCE * self._longest_ns, LEAST_PATIENCE_NS)
        if not self._longest_ns:
            patience_ns = FIRST_PATIENCE_NS
        since_ns = sent_ns = self._unanswered[0].sent
        if self._latest_ns <= sent_ns:
            if idle_ns is None or in_use > len(self._unanswered):
                return False, LEAST_PATIENCE_NS
            since_ns = max(sent_ns, idle_ns)
        left_ns = since_ns + min(patience_ns, self._most_patience_ns) - at_ns
        if left_ns > 0:
            return False, min(left_ns, LEAST_PATIENCE_NS)
        self._freed = self._unanswered.popleft()
        self._freed_ns = 0 if idle_ns is None else at_ns
        self.keeps_none = True
        # With nothing else to do, the server has no other reason.
        self._weight = PROOF if in_use == 1 else 1
        return True, LEAST_PATIENCE_NS

    def _see_freed(self, at_ns: int) -> None:
        """Learn from whether the response began soon after a connection was closed for it."""
        freed = self._freed
        if freed is None:
            return
        soon_ns = max(self._longest_ns, LEAST_PATIENCE_NS)
        if 0 < self._freed_ns < freed.first_byte <= self._freed_ns + soon_ns:
            self.starved += 1
            self._proof += self._weight
            self.are_held = self._proof >= PROOF
        elif freed.first_byte or freed.outcome is not None or 0 < self._freed_ns < at_ns - soon_ns:
            self._proof = max(self._proof - 1, 0)
        else:
            return
        self._freed = None
        self.keeps_none = self.are_held

    def _drop_answered(self) -> None:
        """Watch no longer those at the head that have been answered, or have failed."""
        unanswered = self._unanswered
        while unanswered and (unanswered[0].first_byte or unanswered[0].outcome is not None):
            record = unanswered.popleft()
            if record.first_byte:
                if self._answered is not None and _overlap(record, self._answered):
                    self.answers_several = True
                self._answered = record


def _overlap(one: Record, other: Record) -> bool:
    """Return whether two responses were under way at the same time."""
    begun_ns = max(one.first_byte, other.first_byte)
    return all(record.outcome is None or record.closed > begun_ns for record in (one, other))

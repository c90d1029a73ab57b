"""Sessions of a load: which requests follow others, what they repeat of answers, their tokens,
and their users.
"""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Self

from msgspec import Struct

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import ThinkTime
from loadgen.core.outcome import Cause, Outcome, cause_of
from loadgen.core.record import Record
from loadgen.core.reference_parser import SURROGATE
from loadgen.core.sender import Sender
from loadgen.metrics.recorder import Recorder
from loadgen.util.clock import NS_PER_S
from loadgen.util.partition import Partition
from loadgen.workload.draws import uniforms
from loadgen.workload.due_times import Stripe
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests

logger = logging.getLogger(__name__)
# In place of an answer of thoughts or tool calls alone: some APIs refuse a message without content.
NO_CONTENT = b"(no content)"
SET_COOKIE = "set-cookie"
COOKIE = "Cookie"


class _Join(Struct):
    """A request that follows several, some of which have ended.

    Attributes:
        open: How many have not.
        last_ns: When the last of the others ended.
        is_lost: Whether one has failed, so that it will never be due.
    """

    open: int
    last_ns: int = 0
    is_lost: bool = False


class OpenSessions:
    """The sessions of one load of which a request has been sent, and another one is still to come.

    Args:
        requests: The requests of the run; those of a session are neighbors.
        end: One beyond the last request of this load.
    """

    def __init__(self, requests: Requests, end: int) -> None:
        self._requests = requests
        self._graph = requests.graph()
        self._end = end
        self._joins: dict[int, _Join] = {}  # by the number of the request
        # Requests of each session that have not ended, by the number of its first.
        self._left: dict[int, int] = {}
        # So far, by the number of the request that repeats them.
        self._answers: dict[int, list[bytes]] = {}

    def body(self, index: int) -> bytes:
        """Return the JSON body of request `index`, with the answers of the conversation before
        it.
        """
        parts = self._requests.body(index).split(ANSWER_PLACEHOLDER)
        if len(parts) == 1:
            return parts[0]
        # Each placeholder stands for an answer to an earlier turn.
        pieces = [parts[0]]
        for answer, part in zip(self._answers.get(index, []), parts[1:], strict=True):
            pieces += [answer, part]
        return b"".join(pieces)

    def next_due(self, record: Record) -> list[tuple[int, int]]:
        """Return the number and due time of each request that `record` was the last to wait for;
        it has ended well.
        """
        self._count(record, 1)
        answers = self._answers.pop(record.index, [])
        due = []
        for index in self._followers(record.index):
            join = self._ended(index, record.closed)
            repeats = (
                self._requests.repeats_answers
                and self._graph.predecessors(index)[0] == record.index
            )
            if repeats and not join.is_lost:
                # As the inside of a JSON string that every parser takes: UTF-8 without lone
                # surrogates.
                if not record.answer:
                    answer = NO_CONTENT
                elif SURROGATE.search(record.answer):
                    answer = json.dumps(record.answer_text)[1:-1].encode()
                else:
                    answer = record.answer.decode("utf-8", "replace").encode()
                self._answers[index] = [*answers, answer]
            if join.open == 0 and not join.is_lost:
                due.append((index, join.last_ns + self._requests.think_ns(index)))
        return due

    def given_up(self, record: Record) -> list[Record]:
        """Return records of the requests that will never be due, now that `record` has failed.

        Where the client or its user ended that one, they have the same outcome.
        """
        lost = list[int]()
        ended = [record.index]
        while ended:
            before = ended.pop()
            self._answers.pop(before, None)
            for index in self._followers(before):
                join = self._ended(index, record.closed)
                if not join.is_lost:
                    join.is_lost = True
                    lost.append(index)
                    ended.append(index)
        self._count(record, 1 + len(lost))
        is_same = cause_of(record.outcome) in (Cause.CLIENT, Cause.USER)
        unsent = []
        for index in sorted(lost):
            never = self._requests.record(index, record.closed)
            never.turn = record.turn + index - record.index
            never.outcome = record.outcome if is_same else Outcome.CANCELLED
            never.closed = record.closed
            never.target = record.target
            never.detail = (
                f"never due: request {record.index} of its session ended as {record.outcome}"
            )
            unsent.append(never)
        return unsent

    def is_over(self, record: Record) -> bool:
        """Return whether all requests of the session of `record` have ended, or are given up."""
        return record.index - record.turn not in self._left

    def _count(self, record: Record, ended: int) -> None:
        """Note that so many requests of the session of `record` have ended."""
        first = record.index - record.turn
        left = self._left.pop(first, 0)
        if not left:  # the first of the session to end
            left = 1
            while first + left < self._end and self._graph.predecessors(first + left):
                left += 1
        if left > ended:
            self._left[first] = left - ended

    def _ended(self, index: int, at_ns: int) -> _Join:
        """Note that one of the requests that `index` follows has ended, and return the state of
        the others.
        """
        join = self._joins.pop(index, None) or _Join(len(self._graph.predecessors(index)))
        join.open -= 1
        join.last_ns = max(join.last_ns, at_ns)
        if join.open:
            self._joins[index] = join
        return join

    def _followers(self, index: int) -> list[int]:
        return [follower for follower in self._graph.followers(index) if follower < self._end]


class SessionTokens:
    """Keeps the token of each session, from the answer to a turn until the session ends.

    The token is the value of a response header, and is sent in a request header of the same name.
    Cookies differ: `Set-Cookie` names one with its attributes, several headers may each set one,
    and `Cookie` sends all of them.

    Args:
        header: The response header.
    """

    def __init__(self, header: str) -> None:
        self._header = header
        self._has_cookies = header.lower() == SET_COOKIE
        self._name = header.lower().encode()
        # Values by the name of the cookie; one without names.
        self._tokens: dict[int, dict[bytes, bytes]] = {}

    def prepare(self, record: Record) -> None:
        """Have a request send the token of its session, and keep the header of its answer."""
        record.keeps_head = True
        if tokens := self._tokens.get(record.index - record.turn):
            record.session_token = self._line(tokens)

    def take(self, record: Record) -> None:
        """Keep the token of an answer; without one, that of an earlier turn stays."""
        head = record.response_head
        record.response_head = None
        for line in (head or b"").splitlines()[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == self._name and value.strip():
                tokens = self._tokens.setdefault(record.index - record.turn, {})
                if self._has_cookies:
                    name, _, content = value.strip().partition(b";")[0].partition(b"=")
                    tokens[name.strip()] = content.strip()
                else:
                    tokens[b""] = value.strip()

    def end(self, record: Record) -> None:
        """Forget the session of a request."""
        self._tokens.pop(record.index - record.turn, None)

    def _line(self, tokens: dict[bytes, bytes]) -> bytes:
        if self._has_cookies:
            cookies = b"; ".join(b"%b=%b" % pair for pair in tokens.items())
            return b"%b: %b\r\n" % (COOKIE.encode(), cookies)
        return self._header.encode() + b": " + tokens[b""] + b"\r\n"


class Population:
    """The users of one loop. A user who has ended a session begins the next one that nobody has
    begun.

    Draws depend on the seed and the numbers of users and requests alone.

    Args:
        users: Numbers of the users in the run.
        think: How long they think between two sessions.
        seed: The seed of their think times.
        sessions: Numbers of the first requests of the sessions, ascending.
    """

    def __init__(
        self, users: Sequence[int], think: ThinkTime, seed: int, sessions: Sequence[int]
    ) -> None:
        self._users = users
        self._think = think
        self._seed = seed
        self._sessions = sessions
        self._begun = min(len(users), len(sessions))

    @classmethod
    def from_settings(
        cls, settings: RunSettings, partition: Partition, sessions: Sequence[int]
    ) -> Self | None:
        """Create the users of a partition; None without `--users`.

        Raises:
            BadInput: The think time is invalid.
        """
        if settings.users is None:
            return None
        users = range(partition.index, settings.users, partition.count)
        if len(sessions) < len(users):
            logger.warning(
                "%s sessions for %s users: the other users send nothing", len(sessions), len(users)
            )
        return cls(
            users, ThinkTime.parse(settings.think_time), seed_of(settings, "arrivals"), sessions
        )

    def beginnings(self) -> Stripe:
        """Return the first request of each user: due after a random part of a think time, ns
        from the start.
        """
        due_ns = []
        for user in self._users:
            part, *draws = uniforms(3, self._seed, "start", user)
            due_ns.append(int(part * self._think.draw_s(draws) * NS_PER_S))
        return Stripe(self._sessions[: self._begun], sorted(due_ns)[: self._begun])

    def register(self, sender: Sender, is_over: Callable[[Record], bool]) -> None:
        """Have each user go on once the session of a request is over, by a hook of a `Sender`."""

        def go_on(record: Record) -> None:
            pacer = sender.pacer
            if not pacer.schedule.is_done and is_over(record):
                session = self.next_session(record.closed)
                if session is not None:
                    pacer.follow(*session)

        sender.after_end.append(go_on)

    def next_session(self, ended_ns: int) -> tuple[int, int] | None:
        """Return the number of the first request of a user's next session, and when it is due;
        None: none is left.

        Args:
            ended_ns: When the session before it ended.
        """
        if self._begun == len(self._sessions):
            return None
        number = self._sessions[self._begun]
        self._begun += 1
        return number, ended_ns + int(
            self._think.draw_s(uniforms(2, self._seed, "think", number)) * NS_PER_S
        )


class Sessions:
    """Has the turns of sessions follow each other, by the hooks of a `Sender`.

    Args:
        sender: Gets the hooks.
        requests: The requests of the run.
        recorder: Counts turns that will never be due.
        end: One beyond the last request of this load.
        token: The response header with the token of a session; None: there is none.
        on_record: Called with each record of a turn that will never be due, or None.
    """

    def __init__(
        self,
        sender: Sender,
        requests: Requests,
        recorder: Recorder,
        end: int,
        token: str | None,
        on_record: Callable[[Record], None] | None,
    ) -> None:
        self._sender = sender
        self._requests = requests
        self._recorder = recorder
        self._open = OpenSessions(requests, end)
        self._tokens = SessionTokens(token) if token else None
        self._on_record = on_record

    def register(self) -> None:
        """Set the hooks."""
        self._sender.body = self._open.body
        self._sender.keeps_answer |= self._requests.repeats_answers
        self._sender.before_send.append(self._prepare)
        self._sender.after_end.append(self._continue)

    def _prepare(self, record: Record) -> None:
        """Say which turn a request is, and have it carry the token of its session."""
        record.turn = self._requests.turn(record.index)
        if self._tokens is not None:
            self._tokens.prepare(record)
            if record.turn > 0 and record.session_token is None:
                self._recorder.counters["turns_without_token"] += 1

    def _continue(self, record: Record) -> None:
        """Have the requests follow that are due after this one, or none where it has failed."""
        if self._tokens is not None:
            self._tokens.take(record)
        pacer = self._sender.pacer
        if pacer.schedule.is_done:  # what would follow was counted as cancelled
            return
        lost = list[Record]()
        if record.outcome is Outcome.OK:
            for index, due_ns in self._open.next_due(record):
                pacer.follow(index, due_ns)
        else:
            lost = self._open.given_up(record)
        if self._tokens is not None and self._open.is_over(record):
            self._tokens.end(record)
        for never_due in lost:
            self._recorder.add(never_due)
            if self._on_record is not None:
                self._on_record(never_due)
        self._sender.ended += len(lost)
        pacer.cancel_followups(len(lost))

    def is_over(self, record: Record) -> bool:
        """Return whether all requests of the session of `record` have ended, or are given up."""
        return self._open.is_over(record)

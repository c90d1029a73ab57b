"""`Population`: the users of a run, each of whom sends a request, waits for the answer, and thinks."""

import logging
from collections.abc import Sequence
from typing import Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import ThinkTime
from loadgen.util.clock import NS_PER_S
from loadgen.util.partition import Partition
from loadgen.workload.draws import uniforms
from loadgen.workload.due_times import Stripe

logger = logging.getLogger(__name__)


class Population:
    """The users of one loop. A user who has ended a session begins the next one that nobody has begun.

    Draws depend on the seed and the numbers of users and requests alone.

    Args:
        users: Numbers of the users in the run.
        think: How long they think between two sessions.
        seed: The seed of their think times.
        sessions: Numbers of the first requests of the sessions, ascending.
    """

    def __init__(self, users: Sequence[int], think: ThinkTime, seed: int, sessions: Sequence[int]) -> None:
        self._users, self._think, self._seed, self._sessions = users, think, seed, sessions
        self._begun = min(len(users), len(sessions))

    @classmethod
    def from_settings(cls, settings: RunSettings, partition: Partition, sessions: Sequence[int]) -> Self | None:
        """Create the users of a partition; None without `--users`.

        Raises:
            BadInput: The think time is invalid.
        """
        if settings.users is None:
            return None
        users = range(partition.index, settings.users, partition.count)
        if len(sessions) < len(users):
            logger.warning("%s sessions for %s users: the other users send nothing", len(sessions), len(users))
        return cls(users, ThinkTime.parse(settings.think_time), seed_of(settings, "arrivals"), sessions)

    def beginnings(self) -> Stripe:
        """Return the first request of each user: due after a random part of a think time, ns from the start."""
        due_ns = sorted(self._start_ns(user) for user in self._users)[: self._begun]
        return Stripe(self._sessions[: self._begun], due_ns)

    def next_session(self, ended_ns: int) -> tuple[int, int] | None:
        """Return the number of the first request of a user's next session, and when it is due; None: none is left.

        Args:
            ended_ns: When the session before it ended.
        """
        if self._begun == len(self._sessions):
            return None
        number = self._sessions[self._begun]
        self._begun += 1
        return number, ended_ns + int(self._think.draw_s(uniforms(2, self._seed, "think", number)) * NS_PER_S)

    def _start_ns(self, user: int) -> int:
        part, *of_think_time = uniforms(3, self._seed, "start", user)
        return int(part * self._think.draw_s(of_think_time) * NS_PER_S)

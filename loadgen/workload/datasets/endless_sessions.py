"""`EndlessSessions`: a data set of sessions that has no end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from loadgen.workload.prompt import Prompt


class EndlessSessions(ABC):
    """A data set that begins with the same sessions, however many of them are asked for."""

    __slots__ = ()

    @abstractmethod
    def endless(self) -> Iterator[Iterable[Prompt]]:
        """Yield the prompts of each session, without an end, the same in every call.

        Raises:
            BadInput: A session cannot be read, or there is none.
        """

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. The last session may be incomplete.

        Raises:
            BadInput: As `endless`.
        """
        return islice(chain.from_iterable(self.endless()), count)

    def sessions(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of `count` sessions.

        Raises:
            BadInput: As `endless`.
        """
        return chain.from_iterable(islice(self.endless(), count))

"""What users do beside sending requests: they think, leave early, and try again.

`ThinkTime` is how long a user thinks between an answer and the next request, such as `2`, `1:3` or
`exp:2`. `EarlyEnd` is a share of requests that the client itself ends, such as `5%@tokens=10`.
`Retry` says which refusals make a client send a request again, such as `429,503@attempts=4`.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal, Self, cast

from msgspec import Struct

from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_seconds

THINK_TIME = setting.think_time
THINK_TIME_REMEDY = (
    "write seconds, MIN:MAX, exp:MEAN, normal:MEAN:STDEV or lognormal:MEAN:STDEV, each up to a day"
)
MAX_THINK_TIME_S = 86_400.0
Law = Literal["constant", "uniform", "exp", "normal", "lognormal"]
_PARAMETERS: dict[str, int] = {"exp": 1, "normal": 2, "lognormal": 2}  # of each law with a name
EARLY_END_REMEDY = (
    "write SHARE%@tokens=N or SHARE%@after=TIME, such as 5%@tokens=10 or 5%@after=200ms"
)
MAX_TOKENS, MAX_AFTER_S = 1 << 31, 86400.0
_EARLY_END = r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%@(tokens|after)=(.+)"
RETRY = setting.retry
RETRY_REMEDY = (
    "write HTTP statuses, such as 429 or 429,503, and the number of attempts as 429@attempts=4"
)
ATTEMPTS = 3  # of OpenAI's client, which retries twice
MAX_ATTEMPTS = 100
_RETRY = r"([0-9]{1,4}(?:,[0-9]{1,4})*)(?:@attempts=([0-9]{1,18}))?"


class ThinkTime(Struct, frozen=True):
    """A distribution of think times.

    Attributes:
        law: Its kind.
        parameters_s: The time itself; of uniform times the shortest and the longest; of exponential
            ones the mean; of normal and lognormal ones mean and standard deviation, s. Normal times
            below 0 are drawn again.
    """

    law: Law
    parameters_s: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `--think-time`: SECONDS, MIN:MAX, exp:MEAN, or a normal:MEAN:STDEV or
        lognormal:MEAN:STDEV one.

        Raises:
            BadInput: It is none of these, or longer than a day.
        """
        words = text.split(":")
        law: Law = "uniform" if len(words) == 2 else "constant"
        if words[0] in ("exp", "normal", "lognormal"):
            law = cast("Law", words.pop(0))
        try:
            times_s = tuple(map(parse_seconds, words))
        except ValueError:
            times_s = ()
        expected = _PARAMETERS.get(law, 2 if law == "uniform" else 1)
        is_complete = len(times_s) == expected and all(
            0 <= time_s <= MAX_THINK_TIME_S for time_s in times_s
        )
        if not is_complete or (law == "uniform" and times_s[0] > times_s[1]):
            raise BadInput(THINK_TIME, f"invalid time {text!r}", THINK_TIME_REMEDY)
        return cls(law, times_s)

    def __str__(self) -> str:
        name = [self.law] if self.law in _PARAMETERS else []
        return ":".join([*name, *(f"{time_s:g}s" for time_s in self.parameters_s)])

    @property
    def mean_s(self) -> float:
        """The mean, s: of normal times, before those below 0 are drawn again."""
        return sum(self.parameters_s) / 2 if self.law == "uniform" else self.parameters_s[0]

    @property
    def varies(self) -> bool:
        """Whether each time is drawn; else all are the same."""
        return self.law != "constant"

    def draw_s(self, uniforms: Sequence[float]) -> float:
        """Draw one think time, s.

        Args:
            uniforms: Two numbers from 0 up to, and without, 1.
        """
        if self.law == "uniform":
            shortest_s, longest_s = self.parameters_s
            return shortest_s + (longest_s - shortest_s) * uniforms[0]
        if self.law == "exp":
            return -self.mean_s * math.log1p(-uniforms[0])
        if self.law == "normal" and self.parameters_s[1]:
            from statistics import NormalDist  # not before: it is slow to import

            normal_law = NormalDist(*self.parameters_s)
            negative = normal_law.cdf(0.0)
            # above 0, where an inverse exists
            share = max(negative + (1 - negative) * uniforms[0], math.ulp(0.0))
            return max(normal_law.inv_cdf(min(share, 1 - math.ulp(0.5))), 0.0)
        if self.law == "lognormal" and self.mean_s:
            mean_s, deviation_s = self.parameters_s
            variance = math.log1p((deviation_s / mean_s) ** 2)  # of the logarithm
            # Box and Muller
            normal = math.sqrt(-2 * math.log1p(-uniforms[0])) * math.cos(2 * math.pi * uniforms[1])
            return mean_s * math.exp(math.sqrt(variance) * normal - variance / 2)
        return self.mean_s


class EarlyEnd(Struct, frozen=True):
    """A share of requests that the client itself ends, before the answer is complete.

    Attributes:
        name: The field of the settings that says it.
        share: The share of requests, above 0 and up to 1.
        tokens: After how many tokens have come; None: `after_s` decides.
        after_s: How long after the request was sent, s; None: `tokens` decides.
    """

    name: str
    share: float
    tokens: int | None = None
    after_s: float | None = None

    @classmethod
    def parse(cls, name: str, text: str) -> Self:
        """Read the value of such a field.

        Raises:
            BadInput: It is none, or is out of range.
        """
        form = re.fullmatch(_EARLY_END, text.strip(), re.ASCII)
        if form is None:
            raise BadInput(setting(name), f"invalid value {text!r}", EARLY_END_REMEDY)
        percent, kind, value = form.groups()
        share = float(percent) / 100
        if not 0 < share <= 1:
            problem = f"a share of {percent}%"
            raise BadInput(setting(name), problem, "give a share above 0% and up to 100%")
        if kind == "tokens":
            if not re.fullmatch("[0-9]{1,10}", value, re.ASCII) or not 0 < int(value) <= MAX_TOKENS:
                problem = f"{value!r} is not a number of tokens"
                raise BadInput(setting(name), problem, "give a whole number from 1")
            return cls(name, share, tokens=int(value))
        try:
            after_s = parse_seconds(value)
        except ValueError as error:
            remedy = "give a time such as 200ms or 1.5s"
            raise BadInput(setting(name), str(error), remedy) from error
        if after_s and value[-1:].isdigit():
            remedy = f"write after={value}ms or after={value}s"
            raise BadInput(setting(name), f"{value} has no unit", remedy)
        if not 0 <= after_s <= MAX_AFTER_S:
            problem = f"{value} after a request was sent"
            raise BadInput(setting(name), problem, f"give a time from 0 to {MAX_AFTER_S:g} s")
        return cls(name, share, after_s=after_s)


class Retry(Struct, frozen=True):
    """When a request is sent again.

    Attributes:
        statuses: The HTTP statuses of refusals.
        attempts: How often a request is sent at most.
    """

    statuses: tuple[int, ...]
    attempts: int = ATTEMPTS

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of --retry.

        Raises:
            BadInput: It is no such value, or out of range.
        """
        form = re.fullmatch(_RETRY, "".join(text.split()), re.ASCII)
        if form is None:
            raise BadInput(RETRY, f"invalid value {text!r}", RETRY_REMEDY)
        statuses = tuple(int(status) for status in form[1].split(","))
        for status in statuses:
            if not 400 <= status <= 599:
                problem = f"{status} is not the status of an error"
                raise BadInput(RETRY, problem, "give statuses from 400 to 599")
        attempts = ATTEMPTS if form[2] is None else int(form[2])
        if not 2 <= attempts <= MAX_ATTEMPTS:
            problem = f"{attempts} attempts"
            remedy = f"give 2 to {MAX_ATTEMPTS} attempts, or leave {setting.retry} out"
            raise BadInput(RETRY, problem, remedy)
        return cls(statuses, attempts)

"""`Retry`: which refusals make a client send a request again, such as `429,503@attempts=4`."""

import re
from dataclasses import dataclass
from typing import Self

from loadgen.errors import BadInput

FLAG = "--retry"
REMEDY = "write HTTP statuses, such as 429 or 429,503, and the number of attempts as 429@attempts=4"
ATTEMPTS = 3  # of OpenAI's client, which retries twice
MAX_ATTEMPTS = 100
_FORM = re.compile(r"([0-9]{1,4}(?:,[0-9]{1,4})*)(?:@attempts=([0-9]{1,18}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retry:
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
        form = _FORM.fullmatch("".join(text.split()))
        if form is None:
            raise BadInput(FLAG, f"invalid value {text!r}", REMEDY)
        statuses = tuple(int(status) for status in form[1].split(","))
        for status in statuses:
            if not 400 <= status <= 599:
                raise BadInput(FLAG, f"{status} is not the status of an error", "give statuses from 400 to 599")
        attempts = ATTEMPTS if form[2] is None else int(form[2])
        if not 2 <= attempts <= MAX_ATTEMPTS:
            problem = f"{attempts} attempts"
            raise BadInput(FLAG, problem, f"give 2 to {MAX_ATTEMPTS} attempts, or leave --retry out")
        return cls(statuses, attempts)

"""`Disconnect`: the share of requests whose client closes the connection early, such as `5%@tokens=10`."""

import re
from dataclasses import dataclass
from typing import Self

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

FLAG = "--disconnect"
REMEDY = "write SHARE%@tokens=N or SHARE%@after=TIME, such as 5%@tokens=10 or 5%@after=200ms"
MAX_TOKENS, MAX_AFTER_S = 1 << 31, 86400.0
_FORM = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%@(tokens|after)=(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Which share of users leaves, and when.

    Attributes:
        share: The share of requests, above 0 and up to 1.
        tokens: After how many tokens have come; None: `after_s` decides.
        after_s: How long after the request was sent, s; None: `tokens` decides.
    """

    share: float
    tokens: int | None = None
    after_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of --disconnect.

        Raises:
            BadInput: It is no such value, or out of range.
        """
        form = _FORM.fullmatch(text.strip())
        if form is None:
            raise BadInput(FLAG, f"invalid value {text!r}", REMEDY)
        percent, kind, value = form.groups()
        if not 0 < float(percent) <= 100:
            raise BadInput(FLAG, f"a share of {percent}%", "give a share above 0% and up to 100%")
        if kind == "tokens":
            if not re.fullmatch("[0-9]{1,10}", value, re.ASCII) or not 0 < int(value) <= MAX_TOKENS:
                raise BadInput(FLAG, f"{value!r} is not a number of tokens", "give a whole number from 1")
            return cls(float(percent) / 100, tokens=int(value))
        try:
            after_s = parse_seconds(value)
        except ValueError as error:
            raise BadInput(FLAG, str(error), "give a time such as 200ms or 1.5s") from error
        if after_s and value[-1:].isdigit():
            raise BadInput(FLAG, f"{value} has no unit", f"write after={value}ms or after={value}s")
        if not 0 <= after_s <= MAX_AFTER_S:
            raise BadInput(FLAG, f"{value} after a request was sent", f"give a time from 0 to {MAX_AFTER_S:g} s")
        return cls(float(percent) / 100, after_s=after_s)

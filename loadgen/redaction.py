"""Redaction: takes the credentials of a run out of what a server sends back, before any of it is kept."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import orjson

SHORTEST = 4  # a shorter value is no secret, and would be found everywhere
MARK = "(given)"  # stands wherever a credential stood


class Redaction:
    """A function that puts MARK for credentials, as they are or as JSON or a URL spells them.

    A text may have been cut off: the beginning of a credential at its end is taken out as well.

    Args:
        values: Of the request headers that the user gave; of one with a scheme ("Bearer KEY") the rest alone counts
            too, and of Basic what it encodes.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._forms = [form for form in spellings(values) if len(form) >= SHORTEST]
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))

    def __call__(self, text: str) -> str:
        """`text` without them."""
        if not self._forms:
            return text
        text = self._pattern.sub(MARK, text)
        for form in self._forms:
            for size in range(min(len(form) - 1, len(text)), SHORTEST - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + MARK
        return text


def spellings(values: Iterable[str]) -> list[str]:
    """All forms in which a server may repeat these values of headers, each before what is a part of it."""
    forms = {form for value in values for part in _parts(value) for form in _forms(part) if form}
    return sorted(forms, key=len, reverse=True)


def _parts(value: str) -> Iterator[str]:
    yield value
    scheme, _, rest = value.partition(" ")
    if not rest:
        return
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            user = base64.b64decode(rest, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield user
        yield user.partition(":")[2]


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield orjson.dumps(secret).decode()[1:-1]
    yield quote(secret, safe="")

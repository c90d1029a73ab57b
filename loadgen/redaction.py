"""Redaction: takes the credentials of a run out of what a server sends back, before any of it is kept."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

import orjson

SHORTEST = 4  # a shorter value is no secret, and would be found everywhere
TELLING = 8  # so many characters of the beginning of a key, which servers show to say which it was, are taken out too
MARK = "(given)"  # stands wherever a credential stood
FLAG = re.compile(r"(--[\w-]*(?:api|hf|auth)[-_](?:key|token)[ =])\S+")  # of an engine, and its value
SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)  # of a variable whose value is not shown


def without_secrets(text: str) -> str:
    """A piece of a command line with MARK for what its flags say to be a key or a token."""
    return FLAG.sub(rf"\1{MARK}", text)


def public_words(words: Sequence[str]) -> list[str]:
    """The words of a command, likewise."""
    shown: list[str] = []
    for word in words:
        name, equals, _ = word.partition("=")
        if shown and FLAG.match(f"{shown[-1]} {word}"):
            word = MARK
        elif equals and FLAG.match(word):
            word = f"{name}={MARK}"
        shown.append(word)
    return shown


def public_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Environment variables, with MARK for the values of those that are credentials by their names."""
    return {name: MARK if SECRET_NAME.search(name) else value for name, value in env.items()}


class Redaction:
    """A function that puts MARK for credentials: as they are, or as JSON, a URL or base64 spells them.

    The first characters of one, of which servers like to remind, are taken out as well; at the end of a text that may
    have been cut off, a few are enough.

    Args:
        values: Of the request headers that the user gave; of one with a scheme ("Bearer KEY") the rest alone counts
            too, and of Basic what it encodes.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._forms = [form for form in spellings(values) if len(form) >= SHORTEST]
        self._pattern = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)
        # A scheme is no secret.
        self._long = [form for form in self._forms if len(form) > TELLING and " " not in form]

    def __call__(self, text: str) -> str:
        """`text` without them."""
        if not self._forms:
            return text
        text = self._pattern.sub(MARK, text)
        for form in self._long:
            text = _without_beginnings(text, form)
        for form in self._forms:
            for size in range(min(len(form) - 1, len(text)), SHORTEST - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + MARK
        return text


def _without_beginnings(text: str, form: str) -> str:
    """`text` without what in it begins as `form` does, as far as it is the same."""
    kept, at = "", 0
    for found in re.finditer(re.escape(form[:TELLING]), text, re.IGNORECASE):
        if found.start() < at:
            continue  # inside the one before
        end = found.end()
        for wanted in form[TELLING:].lower():
            if text[end : end + 1].lower() != wanted:
                break
            end += 1
        kept, at = kept + text[at : found.start()] + MARK, end
    return kept + text[at:]


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
    yield base64.b64encode(secret.encode()).decode()

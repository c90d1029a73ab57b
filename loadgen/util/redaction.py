"""Redaction: takes the credentials of a run out of what a server sends back, before any of it is kept."""

import base64
import binascii
import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

import orjson

KEY_VARIABLE = "OPENAI_API_KEY"  # where the API key comes from when no setting gives one; never handed to a child
SHORTEST = 4  # a shorter value is no secret, and would be found everywhere
SHORTEST_WORD = 8  # so are shorter values that may be words
TELLING = 8  # so many characters of the beginning of a key, which servers show to say which it was, are taken out too
MARK = "(given)"  # stands wherever a credential stood
FLAG = re.compile(r"(--[\w-]*(?:api|hf|auth)[-_](?:key|token)[ =])\S+")  # of an engine, and its value
SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)  # of a variable whose value is not shown
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SECRET_HEADER = re.compile("auth|cookie|credential|key|password|secret|session|signature|token", re.IGNORECASE)
SCHEMES = ("apikey", "basic", "bearer", "digest", "key", "token")  # of Authorization: what follows is the secret
# What is given where a client demands a key and the server wants none.
PLACEHOLDER = re.compile(
    "(?:an?|any|anything|api|dummy|empty|example|fake|key|my|needed|no|none|not|null|placeholder|required|secret|sk|test"
    "|token|unused|used|[-_. ])+",
    re.IGNORECASE,
)


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


def header_name(header: str) -> str:
    """The name in a --header value, also in one that is not of the form Name=value: never any of the value."""
    match = HEADER_NAME.match(header)
    separated = match is not None and header[match.end() :].lstrip()[:1] in (":", "=")
    return match.group() if match and separated else ""


def without_user(url: str) -> str:
    """The URL with MARK in place of a user and password."""
    scheme, slashes, _ = url.partition("://")
    return f"{scheme + slashes if slashes else ''}{MARK}@{url.rpartition('@')[2]}" if "@" in url else url


class Redaction:
    """A function that puts MARK for secrets of request headers, as they are or as JSON, a URL or base64 spells them.

    The first characters of a secret, which servers like to show, are taken out as well; at the end of a text that may
    have been cut off, a few are enough.

    Args:
        headers: Those of the requests, name to value; `secrets` says which of them are taken out.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._forms = spellings(secrets(headers))
        self._pattern = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)
        self._beginnings = [form for form in self._forms if len(form) > TELLING]
        self._traces = {form[:SHORTEST].lower() for form in self._forms}

    def __call__(self, text: str) -> str:
        """`text` without them."""
        lowered = text.lower()
        if not any(trace in lowered for trace in self._traces):  # nearly always, and a hundred times as fast
            return text
        text = self._pattern.sub(MARK, text)
        for form in self._beginnings:
            text = _without_beginnings(text, form)
        for form in self._forms:
            for size in range(min(len(form) - 1, len(text)), SHORTEST - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + MARK
        return text


def secrets(headers: Mapping[str, str]) -> list[str]:
    """The parts of request headers that are confidential, of `NAME: value` mappings as they are sent.

    A placeholder such as EMPTY is none. Where the name of the header says that it holds a credential, values of 8
    characters are secrets, and shorter ones of 4 that mix letters and digits; elsewhere values of 8 that mix them.
    """
    return [
        part
        for name, value in headers.items()
        for part, shortest in _parts(name, value)
        if not PLACEHOLDER.fullmatch(part) and len(part) >= shortest
    ]


def is_credential(name: str, value: str) -> bool:
    """Whether a request header of this name and value is confidential."""
    return bool(secrets({name: value}))


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
    """All forms in which a server may repeat these secrets, each before what is a part of it."""
    return sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)


def _parts(name: str, value: str) -> Iterator[tuple[str, float]]:
    """What of a header may be a secret, and how long it is at least if it is one; infinity where it cannot be."""
    scheme, _, rest = value.partition(" ")
    rest, scheme = rest.strip(), scheme.lower()
    parts = [rest] if rest and scheme in SCHEMES else [value, rest]
    if name.lower() == "cookie":
        parts += [pair.partition("=")[2].strip() for pair in value.split(";")]
    for part in parts:
        if SECRET_HEADER.search(name):
            yield part, SHORTEST if _is_mixed(part) else SHORTEST_WORD
        else:
            yield part, SHORTEST_WORD if _is_mixed(part) else math.inf
    if scheme == "basic":
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            user = base64.b64decode(rest, validate=True).decode()
            yield user, SHORTEST
            yield user.partition(":")[2], SHORTEST


def _is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield orjson.dumps(secret).decode()[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode()
